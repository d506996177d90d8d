// All large memory of all ranks on the same few pages, so that hundreds of ranks fit one machine.
//
// What is received is thereby overwritten, and nothing is to be checked: a simulation asks when and
// how much. The linker puts these functions in the place of those that they are named after.
// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-forward-declaration-namespace): the linker's
// names, and SimGrid's.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <map>
#include <mutex>

extern "C" {
void* __real_mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void* memory);
}

namespace {

// Plans, engines and MPI's own memory are smaller or come from elsewhere.
constexpr size_t kFoldedFrom = size_t{1} << 18;

std::mutex mutex;
int fd = -1;
size_t file_bytes = 0;
// Which folded memory is to be given back through free().
std::map<void*, size_t>& Allocated() {
  static auto& allocated = *new std::map<void*, size_t>;
  return allocated;
}

void* Fold(size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (fd < 0) fd = memfd_create("folded", MFD_CLOEXEC);
  if (fd < 0) return MAP_FAILED;
  if (file_bytes < bytes) {
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return MAP_FAILED;
    file_bytes = bytes;
  }
  return __real_mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
}

}  // namespace

extern "C" {

void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  const bool large = (flags & MAP_ANONYMOUS) != 0 && bytes >= kFoldedFrom && address == nullptr;
  return large ? Fold(bytes) : __real_mmap(address, bytes, protection, flags, fd, offset);
}

void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  if (bytes < kFoldedFrom) return __real_aligned_alloc(alignment, bytes);
  void* const memory = Fold(bytes);
  if (memory == MAP_FAILED) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  Allocated()[memory] = bytes;
  return memory;
}

void __wrap_free(void* memory) {
  size_t bytes = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = Allocated().find(memory);
    if (found != Allocated().end()) {
      bytes = found->second;
      Allocated().erase(found);
    }
  }
  if (bytes > 0) {
    munmap(memory, bytes);
  } else {
    __real_free(memory);
  }
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,bugprone-forward-declaration-namespace)
