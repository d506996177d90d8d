// Host memory as a device: anonymous pages for staging, copies and reductions by the calling
// thread.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <system_error>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// Staging this large begins on a huge page's boundary.
constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

void Unmap(std::byte* data, size_t bytes) {
  SLUICE_CHECK(munmap(data, RoundUp(bytes, PageBytes())) == 0, "staging could not be unmapped");
}

absl::Status NoStaging(size_t bytes, int error) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot map ", bytes,
      " bytes of staging memory: ", std::error_code(error, std::generic_category()).message()));
}

class HostDevice final : public Device {
 public:
  absl::StatusOr<DeviceMemory> AllocateStaging(size_t bytes) override;
  absl::Status Start(const CopyBatch& batch) override;
  absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies) override;

 private:
  // Complete and not polled: complete_count_ of them from first_, wrapping round.
  std::array<uint64_t, kMaxOutstanding> complete_{};
  size_t first_ = 0;
  size_t complete_count_ = 0;
};

absl::StatusOr<DeviceMemory> HostDevice::AllocateStaging(size_t bytes) {
  if (bytes == 0) return DeviceMemory();
  // mmap gives page alignment only: map one huge page more, then give back both ends.
  const size_t spare = bytes >= kHugePageBytes ? kHugePageBytes : 0;
  if (bytes > std::numeric_limits<size_t>::max() / 2) return NoStaging(bytes, ENOMEM);
  const size_t wanted = RoundUp(bytes, PageBytes());
  void* const mapped = mmap(nullptr, wanted + spare, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return NoStaging(bytes, errno);
  auto* data = static_cast<std::byte*>(mapped);
  if (spare > 0) {
    const auto address = reinterpret_cast<uintptr_t>(mapped);
    const size_t before = RoundUp(address, kHugePageBytes) - address;
    if (before > 0) Unmap(data, before);
    data += before;
    if (spare > before) Unmap(data + wanted, spare - before);
    // Advice only: without huge pages everything still works.
    (void)madvise(data, wanted, MADV_HUGEPAGE);
  }
  return DeviceMemory(data, bytes, Unmap);
}

absl::Status HostDevice::Start(const CopyBatch& batch) {
  if (complete_count_ == complete_.size()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMaxOutstanding, " copy batches are waiting to be polled"));
  }
  for (const StridedCopy& copy : batch.copies) CopyStrided(copy);
  for (const Reduction& reduction : batch.reductions) Reduce(reduction);
  complete_[(first_ + complete_count_++) % complete_.size()] = batch.cookie;
  return absl::OkStatus();
}

absl::StatusOr<int> HostDevice::Poll(absl::Span<uint64_t> cookies) {
  const size_t count = std::min(cookies.size(), complete_count_);
  for (uint64_t& cookie : cookies.first(count)) {
    cookie = complete_[first_];
    first_ = (first_ + 1) % complete_.size();
  }
  complete_count_ -= count;
  return static_cast<int>(count);
}

}  // namespace

std::unique_ptr<Device> MakeHostDevice() { return std::make_unique<HostDevice>(); }

}  // namespace sluice
