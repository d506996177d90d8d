// Files of tests, in folders of this process alone: others may run tests of the same program.
#ifndef SLUICE_TESTS_MAIN_OWN_FOLDER_H_
#define SLUICE_TESTS_MAIN_OWN_FOLDER_H_

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "gtest/gtest.h"

namespace sluice {

// Goes with what is in it.
class OwnFolder {
 public:
  OwnFolder() {
    std::string made = std::filesystem::path(testing::TempDir()) / "sluice_test_XXXXXX";
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

// All bytes of a file; none if it cannot be read.
inline std::string FileText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The names in a folder, in order.
inline std::vector<std::string> NamesIn(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_MAIN_OWN_FOLDER_H_
