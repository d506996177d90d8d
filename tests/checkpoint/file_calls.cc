// The system's functions, by their numbers.
#include "checkpoint/file_calls.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "tensor/check.h"

namespace sluice::checkpoint_test {
namespace {

std::atomic<FileCalls*> seeing{nullptr};

std::string PathOf(int fd) {
  std::array<char, 4096> path = {};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t bytes = readlink(link.c_str(), path.data(), path.size());
  return bytes < 0 ? std::string() : std::string(path.data(), static_cast<size_t>(bytes));
}

template <class Call>
auto See(FileCall::Kind kind, const std::string& path, const std::string& to, const Call& call)
    -> decltype(call()) {
  FileCalls* const calls = seeing.load();
  const bool is_seen =
      calls != nullptr && (kind == FileCall::Kind::kRead ||
                           path.compare(0, calls->folder().size(), calls->folder()) == 0);
  if (!is_seen) return call();
  const FileCall seen = {kind, path, to};
  if (const int error = calls->Before(seen); error != 0) {
    errno = error;
    return -1;
  }
  const auto result = call();
  const int error = errno;
  calls->After(seen);
  errno = error;
  return result;
}

template <class Call>
auto SeeFd(FileCall::Kind kind, int fd, const Call& call) -> decltype(call()) {
  return seeing.load() == nullptr ? call() : See(kind, PathOf(fd), "", call);
}

int AsInt(long result) { return static_cast<int>(result); }

}  // namespace

FileCalls::FileCalls(std::string folder, std::function<int(const FileCall&)> before,
                     std::function<void(const FileCall&)> after)
    : folder_(std::move(folder)), before_(std::move(before)), after_(std::move(after)) {
  SLUICE_CHECK(seeing.exchange(this) == nullptr, "two that see calls");
}

FileCalls::~FileCalls() { seeing.store(nullptr); }

}  // namespace sluice::checkpoint_test

using sluice::checkpoint_test::AsInt;
using sluice::checkpoint_test::See;
using sluice::checkpoint_test::SeeFd;
using Kind = sluice::checkpoint_test::FileCall::Kind;

// NOLINTBEGIN(readability-identifier-naming): the system's names
extern "C" {

int rename(const char* from, const char* to) noexcept {
  return See(Kind::kRename, from, to,
             [=] { return AsInt(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0)); });
}

int unlink(const char* path) noexcept {
  return See(Kind::kUnlink, path, "",
             [=] { return AsInt(syscall(SYS_unlinkat, AT_FDCWD, path, 0)); });
}

int rmdir(const char* path) noexcept {
  return See(Kind::kRmdir, path, "",
             [=] { return AsInt(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)); });
}

int mkdir(const char* path, mode_t mode) noexcept {
  return See(Kind::kMkdir, path, "",
             [=] { return AsInt(syscall(SYS_mkdirat, AT_FDCWD, path, mode)); });
}

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list list;
    va_start(list, flags);
    mode = va_arg(list, mode_t);
    va_end(list);
  }
  const auto call = [=] { return AsInt(syscall(SYS_openat, AT_FDCWD, path, flags, mode)); };
  return (flags & O_CREAT) == 0 ? call() : See(Kind::kCreate, path, "", call);
}

int fsync(int fd) {
  return SeeFd(Kind::kSync, fd, [] { return 0; });
}

int ftruncate(int fd, off_t bytes) noexcept {
  return SeeFd(Kind::kResize, fd, [=] { return AsInt(syscall(SYS_ftruncate, fd, bytes)); });
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  return SeeFd(Kind::kWrite, fd,
               [=]() -> ssize_t { return syscall(SYS_pwrite64, fd, data, bytes, offset); });
}

int flock(int fd, int operation) noexcept {
  return SeeFd(Kind::kLock, fd, [=] { return AsInt(syscall(SYS_flock, fd, operation)); });
}

ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long locals, const iovec* remote,
                         unsigned long remotes, unsigned long flags) noexcept {
  return See(Kind::kRead, "", "", [=]() -> ssize_t {
    return syscall(SYS_process_vm_readv, pid, local, locals, remote, remotes, flags);
  });
}

// Writes then go by pwrite, on threads.
int io_uring_queue_init_params(unsigned, void*, void*) { return -EPERM; }

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
