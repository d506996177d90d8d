// Removes a file by way of a name that no other process has.
#include "storage/file/remove_same.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "storage/file/atomic_file.h"
#include "storage/source_check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// A change of its name changes ctime too on many file systems, so ctime tells nothing here.
bool IsSame(const FileIdentity& a, const FileIdentity& b) {
  return a.host == b.host && a.device == b.device && a.inode == b.inode && a.bytes == b.bytes &&
         a.written_ns == b.written_ns;
}

absl::Status RemoveError(int error, const std::string& path) {
  return ReadErrnoStatus(error, absl::StrCat("cannot remove ", path));
}

// If the name is taken by now, what has it is newer and keeps it.
absl::Status PutBack(const std::string& aside, const std::string& path) {
  if (link(aside.c_str(), path.c_str()) == 0 || errno == EEXIST) {
    return unlink(aside.c_str()) == 0 ? absl::OkStatus() : RemoveError(errno, aside);
  }
  // A file system without hard links.
  if (std::rename(aside.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return ReadErrnoStatus(errno, absl::StrCat("cannot rename ", aside, " to ", path));
}

}  // namespace

absl::StatusOr<bool> RemoveSame(const std::string& path,
                                const absl::optional<FileIdentity>& known) {
  SLUICE_ASSIGN_OR_RETURN(const absl::optional<FileIdentity> now, IdentifyPath(path));
  if (!now) return true;
  if (!known || !IsSame(*now, *known)) return false;
  SLUICE_ASSIGN_OR_RETURN(const std::string aside, TemporaryName(path));
  if (std::rename(path.c_str(), aside.c_str()) != 0) {
    if (errno == ENOENT) return true;
    return RemoveError(errno, path);
  }
  const absl::StatusOr<absl::optional<FileIdentity>> taken = IdentifyPath(aside);
  if (taken.ok() && *taken && IsSame(**taken, *known)) {
    if (unlink(aside.c_str()) == 0 || errno == ENOENT) return true;
    absl::Status status = RemoveError(errno, path);
    status.Update(PutBack(aside, path));
    return status;
  }
  absl::Status status = PutBack(aside, path);
  status.Update(taken.status());
  if (!status.ok()) return status;
  return false;
}

}  // namespace sluice
