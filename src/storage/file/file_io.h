// System calls on files that run while their caller goes on: started in batches, results polled.
//
// It knows no objects and no alignment; it repeats and interprets nothing. FileSource does.
#ifndef SLUICE_SRC_STORAGE_FILE_FILE_IO_H_
#define SLUICE_SRC_STORAGE_FILE_FILE_IO_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

struct FileCall {
  enum class Kind : uint8_t {
    kOpen,       // openat(fd, path, flags); `path` stays valid until the result
    kRead,       // pread(fd, data, bytes, offset)
    kReadParts,  // preadv(fd, parts, part_count, offset); `parts` stay valid until the result
    kWrite,      // pwrite(fd, data, bytes, offset)
    kClose,      // close(fd)
  };
  Kind kind = Kind::kRead;
  int fd = -1;
  int flags = 0;
  const char* path = nullptr;
  std::byte* data = nullptr;
  uint32_t bytes = 0;
  const iovec* parts = nullptr;
  int part_count = 0;
  int64_t offset = 0;
  uint64_t tag = 0;  // comes back with the result; unique, and at least 8
  // A kRead through the page cache: its result tells whether the bytes were there.
  bool cached = false;
  bool aside = false;  // not within Submit, even if it could end there
};

struct FileResult {
  uint64_t tag = 0;
  int64_t value = 0;  // what the call returned, or -errno
  // A `cached` read is known to have found all of what it returned in the page cache.
  bool at_once = false;
};

// Thread: one at a time, which may change.
class FileIo {
 public:
  // Only once running() is 0.
  virtual ~FileIo() = default;

  virtual absl::string_view name() const = 0;
  // Takes a call, which begins with the next Submit at the latest. At most as many are outstanding
  // as it was made for.
  virtual void Add(const FileCall& call) = 0;
  // An error: the calls that have not begun never will.
  virtual absl::Status Submit() = 0;
  // The next result. False: there is none yet.
  virtual bool Next(FileResult* result) = 0;
  // Asks for a call to end soon, with ECANCELED, EINTR or as it would have. From the next Submit
  // on.
  virtual void Cancel(uint64_t tag) = 0;
  // Calls that have begun and whose results have not been taken.
  virtual int running() const = 0;
  // Sleeps until Next may have something. Only if some are running.
  virtual void Wait() = 0;
  // Makes ready_fd readable until Next is called again.
  virtual void Wake() = 0;
  // Polls readable when Next may have something.
  virtual int ready_fd() const = 0;
};

// For at most `calls_max` calls at once. Unavailable: this kernel or its rules do not allow it.
absl::StatusOr<std::unique_ptr<FileIo>> MakeUringFileIo(int calls_max);
// The same with that many threads of its own.
absl::StatusOr<std::unique_ptr<FileIo>> MakeThreadFileIo(int calls_max);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_FILE_IO_H_
