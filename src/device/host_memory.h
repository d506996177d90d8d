// Anonymous pages, for what the host device gives out.
#ifndef SLUICE_SRC_DEVICE_HOST_MEMORY_H_
#define SLUICE_SRC_DEVICE_HOST_MEMORY_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device/device.h"

namespace sluice {

// No NUMA node in particular.
inline constexpr int kNearProcess = -1;

// Pages of their own for `bytes`, zero, with physical memory at first use. They come from NUMA node
// `node`, or from near the CPUs that this process is bound to. They are huge where that takes no
// more memory than asked for. ResourceExhausted says how many bytes of `what` cannot be had. No
// memory for 0 bytes.
absl::StatusOr<DeviceMemory> MapHostMemory(size_t bytes, absl::string_view what,
                                           int node = kNearProcess);

// Gives such memory back.
void UnmapHostMemory(std::byte* data, size_t bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_HOST_MEMORY_H_
