// Host memory as a device: copies, reductions and normalizations by the calling thread.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "device/carry_out.h"
#include "device/device.h"
#include "device/host_memory.h"

namespace sluice {
namespace {

class HostDevice final : public Device {
 public:
  HostDevice() : Device({.copies_inline = true}) {}

  absl::StatusOr<DeviceMemory> AllocateStaging(size_t bytes) override {
    return MapHostMemory(bytes, "staging memory");
  }

  absl::StatusOr<DeviceMemory> AllocateBuffer(size_t bytes) override {
    return MapHostMemory(bytes, "buffer memory");
  }
  absl::StatusOr<std::unique_ptr<Fence>> MakeFence() override {
    return absl::FailedPreconditionError("host memory has no streams");
  }
  absl::Status Start(const CopyBatch& batch) override;
  absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies) override;
  std::vector<DeviceSpan> TakeSpans() override { return {}; }

 private:
  // Complete and not polled: complete_count_ of them from first_, wrapping round.
  std::array<uint64_t, kMaxOutstanding> complete_{};
  size_t first_ = 0;
  size_t complete_count_ = 0;
};

absl::Status HostDevice::Start(const CopyBatch& batch) {
  if (complete_count_ == complete_.size()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMaxOutstanding, " copy batches are waiting to be polled"));
  }
  CarryOut(batch);
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
