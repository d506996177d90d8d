// Copies there and back.
#include "gpu/device_mirror.h"

#include <utility>

#include "device/copy_flat.h"

namespace sluice::bench {

absl::StatusOr<DeviceMirror> DeviceMirror::Make(Device* device, size_t bytes) {
  absl::StatusOr<DeviceMemory> memory = device->AllocateBuffer(bytes);
  if (!memory.ok()) return memory.status();
  DeviceMirror mirror;
  mirror.device_ = device;
  mirror.memory_ = *std::move(memory);
  return mirror;
}

absl::Status DeviceMirror::Bring(const std::byte* host, size_t offset, size_t bytes) {
  return CopyFlat(device_, host + offset, DeviceKind::kCpu, memory_.data() + offset,
                  device_->traits().buffers, bytes);
}

absl::Status DeviceMirror::Fetch(std::byte* host, size_t offset, size_t bytes) const {
  return CopyFlat(device_, memory_.data() + offset, device_->traits().buffers, host + offset,
                  DeviceKind::kCpu, bytes);
}

}  // namespace sluice::bench
