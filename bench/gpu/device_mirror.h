// Memory of a device that a buffer of the host is brought to, and fetched from.
#ifndef SLUICE_BENCH_GPU_DEVICE_MIRROR_H_
#define SLUICE_BENCH_GPU_DEVICE_MIRROR_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"

namespace sluice::bench {

class DeviceMirror {
 public:
  DeviceMirror() = default;  // of nothing
  // Room for `bytes` bytes. `device` must outlive the mirror. ResourceExhausted as the device says.
  static absl::StatusOr<DeviceMirror> Make(Device* device, size_t bytes);

  bool exists() const { return device_ != nullptr; }
  std::byte* data() const { return memory_.data(); }

  // Copies all of it, or `bytes` from `offset` on of both, and waits.
  absl::Status Bring(const std::byte* host) { return Bring(host, 0, memory_.bytes()); }
  absl::Status Bring(const std::byte* host, size_t offset, size_t bytes);
  absl::Status Fetch(std::byte* host) const { return Fetch(host, 0, memory_.bytes()); }
  absl::Status Fetch(std::byte* host, size_t offset, size_t bytes) const;

 private:
  Device* device_ = nullptr;
  DeviceMemory memory_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_GPU_DEVICE_MIRROR_H_
