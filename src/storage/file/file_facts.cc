// Asks statx about a file, or fstat where statx is refused.
#include "storage/file/file_facts.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "storage/source.h"
#include "storage/source_check.h"

namespace sluice {
namespace {

void TakeOff(int fd, int flag) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & flag) != 0) fcntl(fd, F_SETFL, flags & ~flag);
}

}  // namespace

void MakeFileBuffered(int fd) { TakeOff(fd, O_DIRECT); }

absl::StatusOr<FileFacts> LearnFileFacts(int fd, bool direct) {
  unsigned mask = STATX_TYPE;
#ifdef STATX_DIOALIGN
  if (direct) mask |= STATX_DIOALIGN;
#endif
  struct statx facts = {};
  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, &facts) != 0) {
    // Some sandboxes refuse that call. This one may ask a server.
    struct stat older = {};
    if (fstat(fd, &older) != 0) return ReadErrnoStatus(errno, "fstat");
    facts.stx_mode = static_cast<uint16_t>(older.st_mode);
  }
  if (!S_ISREG(facts.stx_mode) && !S_ISBLK(facts.stx_mode)) {
    return absl::InvalidArgumentError("it is no file");
  }
  // With it, io_uring refuses reads that have to wait.
  TakeOff(fd, O_NONBLOCK);
  if (!direct) return FileFacts{};
#ifdef STATX_DIOALIGN
  if ((facts.stx_mask & STATX_DIOALIGN) != 0) {
    const int64_t alignment = std::max<int64_t>(facts.stx_dio_offset_align, 1);
    const bool can = facts.stx_dio_offset_align != 0 && alignment <= kReadAlignment &&
                     facts.stx_dio_mem_align <= kReadAlignment;
    if (can) return FileFacts{.direct = true, .alignment = alignment};
    MakeFileBuffered(fd);
    return FileFacts{};
  }
#endif
  return FileFacts{.direct = true, .alignment = 1};
}

}  // namespace sluice
