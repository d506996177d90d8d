// Device memory that NCCL can register.
#ifndef SLUICE_SRC_TRANSPORT_NCCL_NCCL_MEMORY_H_
#define SLUICE_SRC_TRANSPORT_NCCL_NCCL_MEMORY_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "device/device.h"

namespace sluice {

// Of the GPU of `device`, which a CUDA accelerator has opened. NCCL takes the registration of other
// memory, and does nothing with it: since 2.24 it registers none that came from cudaMalloc.
absl::StatusOr<DeviceMemory> AllocateNcclMemory(Device* device, size_t bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_NCCL_NCCL_MEMORY_H_
