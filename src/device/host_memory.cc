// mmap, and the alignment that it does not give by itself.
#include "device/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "device/numa.h"
#include "tensor/check.h"
#include "tensor/round.h"

namespace sluice {
namespace {

// Memory this large begins on a huge page's boundary.
constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

absl::Status NoMemory(size_t bytes, absl::string_view what, int error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot map ", bytes, " bytes of ", what, ": ",
                   std::error_code(error, std::generic_category()).message()));
}

}  // namespace

void UnmapHostMemory(std::byte* data, size_t bytes) {
  SLUICE_CHECK(munmap(data, RoundUp(bytes, PageBytes())) == 0, "memory could not be unmapped");
}

absl::StatusOr<DeviceMemory> MapHostMemory(size_t bytes, absl::string_view what, int node) {
  if (bytes == 0) return DeviceMemory();
  // mmap gives page alignment only: map one huge page more, then give back both ends.
  const size_t spare = bytes >= kHugePageBytes ? kHugePageBytes : 0;
  if (bytes > std::numeric_limits<size_t>::max() / 2) return NoMemory(bytes, what, ENOMEM);
  const size_t wanted = RoundUp(bytes, PageBytes());
  void* const mapped = mmap(nullptr, wanted + spare, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return NoMemory(bytes, what, errno);
  auto* data = static_cast<std::byte*>(mapped);
  if (spare > 0) {
    const auto address = reinterpret_cast<uintptr_t>(mapped);
    const size_t before = RoundUp(address, kHugePageBytes) - address;
    if (before > 0) UnmapHostMemory(data, before);
    data += before;
    if (spare > before) UnmapHostMemory(data + wanted, spare - before);
    // Advice only: without huge pages everything still works.
    (void)madvise(data, wanted, MADV_HUGEPAGE);
  }
  if (!PlaceOnNode(data, wanted, node)) PlaceNearProcess(data, wanted);
  return DeviceMemory(data, bytes, [](std::byte* mapping, size_t length, int) {
    UnmapHostMemory(mapping, length);
  });
}

}  // namespace sluice
