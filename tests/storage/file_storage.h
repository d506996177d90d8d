// A directory of files for a test, which goes with it.
#ifndef SLUICE_TESTS_STORAGE_FILE_STORAGE_H_
#define SLUICE_TESTS_STORAGE_FILE_STORAGE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/source_contract.h"

namespace sluice {

class FileStorage {
 public:
  // Below `parent`, or where programs keep temporary files.
  explicit FileStorage(const std::string& parent = "");
  ~FileStorage();
  FileStorage(const FileStorage&) = delete;
  FileStorage& operator=(const FileStorage&) = delete;

  const std::string& directory() const { return directory_; }
  std::string Path(absl::string_view name) const;
  // Makes its directories, too.
  void Write(absl::string_view name, absl::string_view content) const;
  // Writes those that exist; returns all names.
  std::vector<std::string> Write(const std::vector<ContractObject>& objects) const;

 private:
  std::string directory_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_STORAGE_FILE_STORAGE_H_
