// Writing a file so that its name always means a whole one: the old, or the new.
//
// Bytes go into a temporary file in the same directory, which then takes the name. Several
// processes may write ranges of one temporary: one makes it and commits it, the others open it by
// its name.
#ifndef SLUICE_SRC_STORAGE_FILE_ATOMIC_FILE_H_
#define SLUICE_SRC_STORAGE_FILE_ATOMIC_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice {

// Everything here waits for the file system. Thread: one at a time; WriteAt also from several.
class AtomicFile {
 public:
  // Makes a temporary beside `path`, with a name that no other process has, and the permissions of
  // any new file. The error names the file and says why.
  static absl::StatusOr<AtomicFile> Create(const std::string& path);

  // Opens the temporary that another process made, and made `bytes` long, for WriteAt and Sync.
  // Neither commits nor removes that file. FailedPrecondition for anything else of that name: a
  // file of another length, a symbolic link, a directory.
  static absl::StatusOr<AtomicFile> OpenTemporary(const std::string& temporary, int64_t bytes);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  // Removes the temporary that this created, unless it was committed.
  ~AtomicFile();

  // The temporary's path: what the others open.
  const std::string& temporary() const { return temporary_; }

  // For writes by others, while this object lives.
  int fd() const { return fd_; }

  // Writes all bytes at `offset`. Ranges may be written in any order and leave gaps, which read as
  // zeros.
  absl::Status WriteAt(int64_t offset, absl::Span<const std::byte> bytes);
  absl::Status WriteAt(int64_t offset, absl::string_view text);

  // Makes the file this long: gaps at its end are filled with zeros, what is beyond goes. The file
  // has its room from then on, where the file system can set room aside.
  absl::Status Resize(int64_t bytes);

  // Waits until what this process wrote is on the storage.
  absl::Status Sync();

  // Sync, then give the file its name in place of what has it now, and wait until the directory is
  // on the storage, too. All others must have synced before. On an error before that the name is
  // untouched and the temporary goes with this object. For files that Create made; once.
  absl::Status Commit();

  // Commit without waiting for the storage. After a crash of the system the file may be damaged
  // unless it was synced before. The file may have its older name unless the directory is synced
  // afterwards.
  absl::Status CommitUnsynced();

 private:
  AtomicFile(int fd, std::string path, std::string temporary);

  absl::Status Error(int error, absl::string_view what) const;
  absl::Status CloseAndRename();
  void Drop();

  int fd_ = -1;
  std::string path_;  // empty if this did not make the temporary, or has committed it
  std::string temporary_;
};

// Waits until names that were made, changed or removed in the directory are on the storage.
absl::Status SyncDirectory(const std::string& directory);

// Names a temporary of `path` as Create does: beside `path`, and no other process has the name.
absl::StatusOr<std::string> TemporaryName(const std::string& path);

// Whether `temporary`, without its directory, is what Create calls a temporary of a file `name`.
bool IsTemporaryOf(absl::string_view temporary, absl::string_view name);

// A number that no other process draws.
absl::StatusOr<uint64_t> RandomNumber();

// Writes a whole file by AtomicFile, synced.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_ATOMIC_FILE_H_
