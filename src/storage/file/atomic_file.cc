// Temporary files that take a name when they are whole.
#include "storage/file/atomic_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "storage/source_check.h"
#include "tensor/check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

struct SplitPath {
  std::string directory;  // "." if the path names none
  std::string name;
};

SplitPath Split(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

constexpr size_t kMostNameBytes = 200;
constexpr absl::string_view kTemporaryEnd = ".tmp";

}  // namespace

absl::StatusOr<uint64_t> RandomNumber() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
    return ReadErrnoStatus(errno, "getrandom");
  }
  return number;
}

// Several machines may share the directory, so a process number alone is not unique. Hidden, and
// short enough whatever the name is.
absl::StatusOr<std::string> TemporaryName(const std::string& path) {
  SLUICE_ASSIGN_OR_RETURN(const auto number, RandomNumber());
  const SplitPath split = Split(path);
  return absl::StrCat(split.directory, "/.", split.name.substr(0, kMostNameBytes),
                      absl::StrFormat(".%d.%016x", getpid(), number), kTemporaryEnd);
}

bool IsTemporaryOf(absl::string_view temporary, absl::string_view name) {
  if (!absl::ConsumePrefix(&temporary, ".") || !absl::ConsumeSuffix(&temporary, kTemporaryEnd) ||
      !absl::ConsumePrefix(&temporary, name.substr(0, kMostNameBytes)) ||
      !absl::ConsumePrefix(&temporary, ".")) {
    return false;
  }
  const std::vector<absl::string_view> numbers = absl::StrSplit(temporary, '.');
  const auto is_hex = [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); };
  int64_t process = 0;
  return numbers.size() == 2 && absl::SimpleAtoi(numbers[0], &process) && numbers[1].size() == 16 &&
         std::all_of(numbers[1].begin(), numbers[1].end(), is_hex);
}

absl::Status SyncDirectory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ReadErrnoStatus(errno, absl::StrCat("cannot open ", directory));
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  // Some file systems keep directories synced and know no such call.
  if (error == 0 || error == EINVAL || error == ENOTSUP) return absl::OkStatus();
  return ReadErrnoStatus(error, absl::StrCat("cannot sync ", directory));
}

AtomicFile::AtomicFile(int fd, std::string path, std::string temporary)
    : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::exchange(other.path_, {})),
      temporary_(std::exchange(other.temporary_, {})) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    Drop();
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::exchange(other.path_, {});
    temporary_ = std::exchange(other.temporary_, {});
  }
  return *this;
}

AtomicFile::~AtomicFile() { Drop(); }

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  if (Split(path).name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", path, "\" names no file"));
  }
  while (true) {
    SLUICE_ASSIGN_OR_RETURN(auto temporary, TemporaryName(path));
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return AtomicFile(fd, path, std::move(temporary));
    if (errno != EEXIST) {
      return ReadErrnoStatus(errno, absl::StrCat("cannot create a temporary file for ", path));
    }
  }
}

absl::StatusOr<AtomicFile> AtomicFile::OpenTemporary(const std::string& temporary, int64_t bytes) {
  // O_NONBLOCK: nobody else's pipe is waited for.
  const int fd = open(temporary.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return ReadErrnoStatus(errno, absl::StrCat("cannot open ", temporary));
  AtomicFile file(fd, "", temporary);
  struct stat facts = {};
  if (fstat(fd, &facts) != 0) return file.Error(errno, "look at");
  if (S_ISREG(facts.st_mode) && facts.st_size == bytes) return file;
  return absl::FailedPreconditionError(
      absl::StrCat(temporary, " is not the file of ", bytes, " bytes that another rank has made"));
}

absl::Status AtomicFile::Error(int error, absl::string_view what) const {
  return ReadErrnoStatus(error,
                         absl::StrCat("cannot ", what, " ", path_.empty() ? temporary_ : path_));
}

absl::Status AtomicFile::WriteAt(int64_t offset, absl::Span<const std::byte> bytes) {
  SLUICE_CHECK(fd_ >= 0, "writing into a file that is closed");
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (written < 0) {
      if (errno == EINTR) continue;
      return Error(errno, "write");
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::WriteAt(int64_t offset, absl::string_view text) {
  return WriteAt(offset, absl::Span<const std::byte>(
                             reinterpret_cast<const std::byte*>(text.data()), text.size()));
}

absl::Status AtomicFile::Resize(int64_t bytes) {
  SLUICE_CHECK(fd_ >= 0, "resizing a file that is closed");
  if (ftruncate(fd_, bytes) != 0) return Error(errno, "resize");
  const bool is_full = bytes > 0 && fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0 &&
                       (errno == ENOSPC || errno == EDQUOT);
  return is_full ? Error(errno, "resize") : absl::OkStatus();
}

absl::Status AtomicFile::Sync() {
  SLUICE_CHECK(fd_ >= 0, "syncing a file that is closed");
  return fsync(fd_) == 0 ? absl::OkStatus() : Error(errno, "sync");
}

absl::Status AtomicFile::Commit() {
  SLUICE_RETURN_IF_ERROR(Sync());
  const std::string directory = Split(path_).directory;
  SLUICE_RETURN_IF_ERROR(CloseAndRename());
  return SyncDirectory(directory);
}

absl::Status AtomicFile::CommitUnsynced() { return CloseAndRename(); }

absl::Status AtomicFile::CloseAndRename() {
  SLUICE_CHECK(fd_ >= 0 && !path_.empty(), "committing a file that is not there to be committed");
  // Network file systems tell of failed writes here.
  if (close(std::exchange(fd_, -1)) != 0) return Error(errno, "close");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return Error(errno, "rename");
  path_.clear();
  return absl::OkStatus();
}

void AtomicFile::Drop() {
  if (fd_ >= 0) close(fd_);
  if (!path_.empty()) unlink(temporary_.c_str());
  fd_ = -1;
  path_.clear();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view text) {
  SLUICE_ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path));
  SLUICE_RETURN_IF_ERROR(file.WriteAt(0, text));
  return file.Commit();
}

}  // namespace sluice
