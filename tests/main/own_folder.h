// A folder for the files of tests, of this process alone: others may run tests of the same program.
#ifndef SLUICE_TESTS_MAIN_OWN_FOLDER_H_
#define SLUICE_TESTS_MAIN_OWN_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "gtest/gtest.h"

namespace sluice {

// Goes with what is in it.
class OwnFolder {
 public:
  OwnFolder() {
    std::string made = testing::TempDir() + "/sluice_test_XXXXXX";
    EXPECT_NE(mkdtemp(made.data()), nullptr) << made;
    path_ = made;
  }
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The path of a file in a folder that goes when the process ends.
inline std::string InOwnFolder(const std::string& name) {
  static const OwnFolder folder;
  return (folder.path() / name).string();
}

}  // namespace sluice

#endif  // SLUICE_TESTS_MAIN_OWN_FOLDER_H_
