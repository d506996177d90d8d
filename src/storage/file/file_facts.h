// Facts of a newly opened file: whether it is one, and how reads around the page cache are aligned.
#ifndef SLUICE_SRC_STORAGE_FILE_FILE_FACTS_H_
#define SLUICE_SRC_STORAGE_FILE_FILE_FACTS_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace sluice {

struct FileFacts {
  bool direct = false;    // reads go around the page cache
  int64_t alignment = 1;  // of offsets and lengths; memory is aligned to kReadAlignment
};

// The file was opened with O_NONBLOCK, which is taken off: what is opened may be a pipe. `direct`:
// it was opened with O_DIRECT, too. That is taken off where the file's alignment is too large for
// us, or the file cannot be read so. A file system that does not say how it wants reads aligned is
// thought to want nothing. InvalidArgument if it is no file. Asks no server, so does not block,
// unless the system refuses statx.
absl::StatusOr<FileFacts> LearnFileFacts(int fd, bool direct);

// Takes O_DIRECT off.
void MakeFileBuffered(int fd);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_FILE_FACTS_H_
