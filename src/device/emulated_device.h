// A device that the host emulates: a thread that copies, at a limited rate, and fences.
#ifndef SLUICE_SRC_DEVICE_EMULATED_DEVICE_H_
#define SLUICE_SRC_DEVICE_EMULATED_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "device/device.h"

namespace sluice {

// Batches are carried out one after the other by a thread of its own. A copy to or from the
// device's memory (kEmulatedDevice) takes at least its bytes over `bytes_per_s`; 0: no limit.
// Fences take whatever thread calls for a stream. Unavailable if no thread can be had.
absl::StatusOr<std::unique_ptr<Device>> MakeEmulatedDevice(double bytes_per_s);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_EMULATED_DEVICE_H_
