// The identity of a file behind a descriptor, and its state. So bytes that several processes read,
// one after the other, are known to be the same.
#ifndef SLUICE_SRC_STORAGE_FILE_FILE_IDENTITY_H_
#define SLUICE_SRC_STORAGE_FILE_FILE_IDENTITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace sluice {

struct FileIdentity {
  uint64_t host = 0;  // of who asked: a hash of the boot id
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t links = 0;
  int64_t bytes = 0;
  int64_t written_ns = 0;  // mtime
  int64_t changed_ns = 0;  // ctime

  bool operator==(const FileIdentity& other) const = default;
};

// May wait for a file server. InvalidArgument if it is no file.
absl::StatusOr<FileIdentity> IdentifyFile(int fd);

// Identifies the file that `path` names; nothing if there is none. May wait for a file server.
absl::StatusOr<absl::optional<FileIdentity>> IdentifyPath(const std::string& path);

// Whether the two are of one file with the same bytes. Numbers of devices and inodes count within
// one host alone: file systems make some of them up on each host. A file that has gained or lost a
// name has a new ctime, and its old bytes.
bool SameBytes(const FileIdentity& a, const FileIdentity& b);

std::string IdentityText(const FileIdentity& identity);
// Nothing if it is not what IdentityText gave.
absl::optional<FileIdentity> ParseIdentityText(absl::string_view text);

// The files that a source reads, each in one state from the first look to the last. The source
// tells of each descriptor when it is opened and before it is closed.
// Thread: one at a time.
class FileIdentities {
 public:
  // The first look at a file says which one it is.
  explicit FileIdentities(std::vector<std::string> names)
      : names_(std::move(names)), known_(names_.size()) {}
  // Another process has looked: `known` has one for each name.
  FileIdentities(std::vector<std::string> names, const std::vector<FileIdentity>& known)
      : names_(std::move(names)), known_(known.begin(), known.end()) {}

  // DataLoss, with the file's name, if it is another file, or has been written to.
  absl::Status Opened(int object, int fd);
  void Closing(int object, int fd);
  // For a file that is not there: DataLoss if it was.
  absl::Status Missing(int object) const;

  // The first error that Opened or Closing has found.
  const absl::Status& outcome() const { return outcome_; }
  const absl::optional<FileIdentity>& known(int object) const {
    return known_[static_cast<size_t>(object)];
  }

 private:
  absl::Status Look(int object, int fd);

  std::vector<std::string> names_;
  std::vector<absl::optional<FileIdentity>> known_;
  absl::Status outcome_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_FILE_IDENTITY_H_
