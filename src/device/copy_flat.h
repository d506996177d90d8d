// A copy of one stretch of memory that is waited for: for programs and tests that bring data to a
// device's memory and back.
#ifndef SLUICE_SRC_DEVICE_COPY_FLAT_H_
#define SLUICE_SRC_DEVICE_COPY_FLAT_H_

#include <cstddef>

#include "absl/status/status.h"
#include "device/device.h"
#include "sluice/tensor.h"

namespace sluice {

// Copies `bytes` bytes and returns when they are there. Nothing else may be outstanding on the
// device. The device's error otherwise.
absl::Status CopyFlat(Device* device, const std::byte* src, DeviceKind src_kind, std::byte* dst,
                      DeviceKind dst_kind, size_t bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_COPY_FLAT_H_
