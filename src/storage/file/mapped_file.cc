// mmap, and copies out of it by the kernel.
#include "storage/file/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "storage/file/file_facts.h"
#include "storage/source_check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// The kernel reads no more of one MADV_WILLNEED than its device's read-ahead, 128 KiB mostly, and
// forgets the rest.
constexpr int64_t kAdvisedBytes = int64_t{128} << 10;

// Pages of a range that are in the page cache or on their way there; -1 if the kernel does not say.
// That takes a fraction of what it takes to have the kernel look whether it should read them.
int64_t CachedPages(int fd, int64_t offset, int64_t bytes) {
  constexpr int64_t kCachestat = 451;  // since Linux 6.5; older headers do not know it
  const uint64_t range[2] = {static_cast<uint64_t>(offset), static_cast<uint64_t>(bytes)};
  uint64_t counts[5];
  const bool known = syscall(kCachestat, fd, range, counts, 0U) == 0;
  return known ? static_cast<int64_t>(counts[0]) : -1;
}

absl::Status TooShort() { return absl::DataLossError("the file ends before them"); }

}  // namespace

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}

absl::StatusOr<MappedFile> MappedFile::Map(int directory_fd, const std::string& name) {
  MappedFile file;
  // O_NONBLOCK: a pipe is refused below, not waited for.
  file.fd_ = Fd(openat(directory_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file.fd_.get() < 0) return ReadErrnoStatus(errno, "opening it");
  SLUICE_RETURN_IF_ERROR(LearnFileFacts(file.fd_.get(), false).status());
  struct stat status;
  if (fstat(file.fd_.get(), &status) != 0) return ReadErrnoStatus(errno, "fstat");
  if (status.st_size == 0) return file;
  void* const data =
      mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_SHARED, file.fd_.get(), 0);
  if (data == MAP_FAILED) return ReadErrnoStatus(errno, "mapping it");
  file.data_ = static_cast<std::byte*>(data);
  file.bytes_ = status.st_size;
  return file;
}

void MappedFile::WillNeed(int64_t offset, int64_t bytes) const {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t begin = offset / page * page;
  const int64_t end = std::min(offset + bytes, bytes_);
  if (begin >= end ||
      CachedPages(fd_.get(), begin, end - begin) == (end - begin + page - 1) / page) {
    return;
  }
  for (int64_t at = begin; at < end; at += kAdvisedBytes) {
    madvise(data_ + at, static_cast<size_t>(std::min(kAdvisedBytes, end - at)), MADV_WILLNEED);
  }
}

absl::StatusOr<int64_t> MappedFile::ReadSome(int64_t offset, absl::Span<std::byte> into) const {
  const iovec local = {.iov_base = into.data(), .iov_len = into.size()};
  const iovec mapped = {.iov_base = data_ + offset, .iov_len = into.size()};
  ssize_t count = process_vm_readv(getpid(), &local, 1, &mapped, 1, 0);
  if (count <= 0) count = pread(fd_.get(), into.data(), into.size(), offset);
  if (count < 0) return ReadErrnoStatus(errno, "reading it");
  return count;
}

absl::Status MappedFile::Read(int64_t offset, absl::Span<std::byte> into) const {
  if (offset + static_cast<int64_t>(into.size()) > bytes_) return TooShort();
  while (!into.empty()) {
    SLUICE_ASSIGN_OR_RETURN(const int64_t count, ReadSome(offset, into));
    if (count == 0) return TooShort();
    offset += count;
    into.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status MappedFile::CheckEnd(int64_t end) const {
  struct stat status;
  if (fstat(fd_.get(), &status) != 0) return ReadErrnoStatus(errno, "fstat");
  return status.st_size < end ? TooShort() : absl::OkStatus();
}

}  // namespace sluice
