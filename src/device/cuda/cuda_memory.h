// Pinned memory of the host, and memory of a GPU.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_MEMORY_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_MEMORY_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device/device.h"

namespace sluice {

// As host_memory.h gives it, near the current device, `ordinal`, and pinned for all devices.
// ResourceExhausted says how many bytes of `what` cannot be had.
absl::StatusOr<DeviceMemory> AllocatePinned(int ordinal, size_t bytes, absl::string_view what);

// Memory of the current device, `ordinal`. ResourceExhausted says how many bytes of `what` were
// asked for, and how many are free and there in all.
absl::StatusOr<DeviceMemory> AllocateOnGpu(int ordinal, size_t bytes, absl::string_view what);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_MEMORY_H_
