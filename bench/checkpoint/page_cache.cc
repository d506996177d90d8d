// posix_fadvise, and mincore to see what came of it.
#include "checkpoint/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace sluice::bench {
namespace {

constexpr int64_t kAllowedShare = 100;  // one of so many pages

struct Pages {
  int64_t all = 0;
  int64_t resident = 0;
};

absl::Status CacheError(const char* call, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(call, " of ", path));
}

// A mapping that nobody touches: it brings nothing into the cache.
absl::StatusOr<Pages> PagesOf(int fd, int64_t bytes, const std::string& path) {
  if (bytes == 0) return Pages();
  const auto length = static_cast<size_t>(bytes);
  void* memory = mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return CacheError("mmap", path);
  const absl::Cleanup unmap = [memory, length] { munmap(memory, length); };
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> states((length + page - 1) / page);
  if (mincore(memory, length, states.data()) != 0) return CacheError("mincore", path);
  Pages pages = {.all = static_cast<int64_t>(states.size())};
  pages.resident = std::count_if(states.begin(), states.end(),
                                 [](unsigned char state) { return (state & 1) != 0; });
  return pages;
}

absl::Status Drop(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return CacheError("open", path);
  const absl::Cleanup closed = [fd] { close(fd); };
  // Pages that wait to be written stay in the cache.
  if (fdatasync(fd) != 0 && errno != EINVAL && errno != EROFS) return CacheError("fdatasync", path);
  if (const int error = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); error != 0) {
    return absl::ErrnoToStatus(error, absl::StrCat("posix_fadvise of ", path));
  }
  if (access(path.c_str(), W_OK) != 0) return absl::OkStatus();  // mincore would not tell
  struct stat facts = {};
  if (fstat(fd, &facts) != 0) return CacheError("fstat", path);
  const absl::StatusOr<Pages> pages = PagesOf(fd, facts.st_size, path);
  if (!pages.ok()) return pages.status();
  if (pages->resident <= pages->all / kAllowedShare) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--cold: ", pages->resident, " of ", pages->all, " pages of ", path,
                   " stay in the page cache: its file system is memory, or it is in use"));
}

}  // namespace

absl::Status DropFromPageCache(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (absl::Status status = Drop(path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace sluice::bench
