// One writer of a directory at a time, over processes and, where the file system can, over hosts.
#ifndef SLUICE_SRC_STORAGE_FILE_DIRECTORY_LOCK_H_
#define SLUICE_SRC_STORAGE_FILE_DIRECTORY_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "net/fd.h"

namespace sluice {

// Makes a file in the directory, locks the file (flock), and removes it at the end. The lock of a
// process that dies is free at once, and the file that it leaves is taken over. Everything here
// waits for the file system. Thread: one at a time.
class DirectoryLock {
 public:
  // The file is directory/name. FailedPrecondition, with who has it, if it is locked. A file system
  // that has no locks gives one that is not held().
  static absl::StatusOr<DirectoryLock> Take(const std::string& directory, absl::string_view name);

  DirectoryLock(DirectoryLock&& other) noexcept = default;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  ~DirectoryLock() { Release(); }

  bool held() const { return fd_.get() >= 0; }
  void Release();

 private:
  DirectoryLock(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Fd fd_;
  std::string path_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_DIRECTORY_LOCK_H_
