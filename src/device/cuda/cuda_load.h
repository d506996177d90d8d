// Puts the kernels' machine code onto a GPU before any of them is launched.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_LOAD_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_LOAD_H_

#include "absl/status/status.h"

namespace sluice {

// Loads all kernels on the current device, `ordinal`. CUDA would load each at its first launch.
// That may wait for all that the GPU does, such as a transport's kernels that wait for another
// rank. FailedPrecondition if this was built without code for the device; it says what it was built
// for.
absl::Status LoadCudaKernels(int ordinal);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_LOAD_H_
