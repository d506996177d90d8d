// flock on a file that comes and goes.
#include "storage/file/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/source_check.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

int OpenLockFile(const std::string& path) {
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | kFlags, 0666);
  // Another user's, who was killed: it can be locked all the same.
  return fd < 0 && errno == EACCES ? open(path.c_str(), O_RDONLY | kFlags) : fd;
}

// The last holder may have removed the file since this process opened it.
bool IsStillNamed(int fd, const std::string& path) {
  struct stat open_one = {};
  struct stat named = {};
  return fstat(fd, &open_one) == 0 && lstat(path.c_str(), &named) == 0 &&
         open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

std::string OwnName() {
  std::array<char, 65> host = {};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return absl::StrCat("process ", getpid(), " on ", host.data());
}

std::string OwnerOf(int fd) {
  std::array<char, 128> text = {};
  const ssize_t bytes = pread(fd, text.data(), text.size() - 1, 0);
  if (bytes <= 0) return "another process";
  // Whatever it is, it goes into a message.
  return Quoted(absl::string_view(text.data(), static_cast<size_t>(bytes)));
}

}  // namespace

absl::StatusOr<DirectoryLock> DirectoryLock::Take(const std::string& directory,
                                                  absl::string_view name) {
  std::string path = absl::StrCat(directory, "/", name);
  while (true) {
    Fd fd(OpenLockFile(path));
    if (fd.get() < 0) return ReadErrnoStatus(errno, absl::StrCat("cannot make ", path));
    while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      if (error == EINTR) continue;
      if (error == EWOULDBLOCK) {
        return absl::FailedPreconditionError(
            absl::StrCat(path, " is locked by ", OwnerOf(fd.get())));
      }
      if (error != ENOSYS && error != EOPNOTSUPP && error != EINVAL && error != ENOLCK) {
        return ReadErrnoStatus(error, absl::StrCat("cannot lock ", path));
      }
      unlink(path.c_str());
      return DirectoryLock(Fd(), std::move(path));
    }
    if (!IsStillNamed(fd.get(), path)) continue;
    // For messages alone: what cannot be written is not said.
    const std::string owner = OwnName();
    const bool said =
        ftruncate(fd.get(), 0) == 0 && pwrite(fd.get(), owner.data(), owner.size(), 0) > 0;
    static_cast<void>(said);
    return DirectoryLock(std::move(fd), std::move(path));
  }
}

DirectoryLock& DirectoryLock::operator=(DirectoryLock&& other) noexcept {
  if (this == &other) return *this;
  Release();
  fd_ = std::move(other.fd_);
  path_ = std::move(other.path_);
  return *this;
}

void DirectoryLock::Release() {
  if (!held()) return;
  // While it is locked: nobody else can have made a file of this name.
  unlink(path_.c_str());
  fd_ = Fd();
}

}  // namespace sluice
