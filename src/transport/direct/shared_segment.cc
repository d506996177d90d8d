// Segments are memfds. A process that may trace another one may open its descriptors. When the last
// process that has one is killed nothing is left behind.
#include "transport/direct/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "net/fd.h"

namespace sluice {
namespace {

// The mappings of this process, so that threads that share a segment see it at one address.
struct Mappings {
  std::mutex mutex;
  absl::flat_hash_map<uint64_t, std::weak_ptr<SharedSegment>> by_inode;
};

Mappings& OwnMappings() {
  static auto* const kMappings = new Mappings;
  return *kMappings;
}

// `what`, and the last error of a call.
std::string WithError(const std::string& what) {
  return std::string(absl::ErrnoToStatus(errno, what).message());
}

absl::Status CannotAttach(const SharedSegmentName& name, const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("memory shared by process ", name.pid, " cannot be mapped: ", why));
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

}  // namespace

absl::StatusOr<std::shared_ptr<SharedSegment>> SharedSegment::Create(size_t bytes) {
  const int fd = memfd_create("sluice", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const auto failed = [&](const char* what) {
    absl::Status status = absl::ResourceExhaustedError(
        absl::StrCat("cannot share ", bytes, " bytes of memory: ", WithError(what)));
    if (fd >= 0) close(fd);
    return status;
  };
  if (fd < 0) return failed("memfd_create");
  struct stat info = {};
  if (fchmod(fd, S_IRUSR | S_IWUSR) != 0) return failed("fchmod");
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return failed("ftruncate");
  // A process dies if it touches pages that another one has cut off.
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return failed("seals");
  if (fstat(fd, &info) != 0) return failed("fstat");
  const SharedSegmentName name = {getpid(), fd, bytes, info.st_dev, info.st_ino};
  absl::StatusOr<std::shared_ptr<SharedSegment>> mapped = Map(fd, name);
  if (!mapped.ok()) return failed("mmap");
  Mappings& mappings = OwnMappings();
  const std::lock_guard<std::mutex> lock(mappings.mutex);
  mappings.by_inode[name.inode] = *mapped;
  return mapped;
}

absl::StatusOr<std::shared_ptr<SharedSegment>> SharedSegment::Attach(
    const SharedSegmentName& name) {
  if (name.pid == getpid()) {
    Mappings& mappings = OwnMappings();
    const std::lock_guard<std::mutex> lock(mappings.mutex);
    const auto found = mappings.by_inode.find(name.inode);
    if (found != mappings.by_inode.end()) {
      if (std::shared_ptr<SharedSegment> mapped = found->second.lock()) return mapped;
    }
    return CannotAttach(name, "it is gone");
  }
  const std::string path = absl::StrCat("/proc/", name.pid, "/fd/", name.fd);
  const Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.is_open()) return CannotAttach(name, WithError(path));
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0 || info.st_dev != name.device || info.st_ino != name.inode) {
    return CannotAttach(name, absl::StrCat(path, " is something else"));
  }
  if (static_cast<uint64_t>(info.st_size) < name.bytes) {
    return CannotAttach(name, absl::StrCat(path, " has ", info.st_size, " bytes"));
  }
  SharedSegmentName own = name;
  own.fd = -1;
  absl::StatusOr<std::shared_ptr<SharedSegment>> mapped = Map(fd.get(), own);
  return mapped.ok() ? mapped : CannotAttach(name, WithError("mmap"));
}

absl::StatusOr<std::shared_ptr<SharedSegment>> SharedSegment::Map(int fd,
                                                                  const SharedSegmentName& name) {
  void* const data = mmap(nullptr, name.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return absl::ResourceExhaustedError("mmap");
  // Copies take fewer page faults with huge pages, if the system allows these for shared memory.
  static_cast<void>(madvise(data, name.bytes, MADV_HUGEPAGE));
  return std::shared_ptr<SharedSegment>(new SharedSegment(static_cast<std::byte*>(data), name));
}

absl::Status SharedSegment::Reserve() {
  // As a page fault does, so with huge pages where they may be had.
  if (madvise(data_, name_.bytes, MADV_POPULATE_WRITE) == 0) return absl::OkStatus();
  // Linux has it from 5.14 on.
  if (errno == EINVAL && fallocate(name_.fd, 0, 0, static_cast<off_t>(name_.bytes)) == 0) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot share ", name_.bytes, " bytes of memory: ", WithError("taking pages")));
}

SharedSegment::~SharedSegment() {
  if (name_.pid == getpid()) {
    Mappings& mappings = OwnMappings();
    const std::lock_guard<std::mutex> lock(mappings.mutex);
    mappings.by_inode.erase(name_.inode);
  }
  munmap(data_, name_.bytes);
  CloseDescriptor();
}

void SharedSegment::CloseDescriptor() {
  if (name_.fd >= 0) close(name_.fd);
  name_.fd = -1;
}

}  // namespace sluice
