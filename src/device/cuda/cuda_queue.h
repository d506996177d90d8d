// The stream of a CUDA device on which a transport puts its work.
#ifndef SLUICE_SRC_TRANSPORT_CUDA_QUEUE_H_
#define SLUICE_SRC_TRANSPORT_CUDA_QUEUE_H_

#include <cuda_runtime_api.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"

namespace sluice {

struct CudaQueue {
  int ordinal = 0;
  cudaStream_t stream = nullptr;
};

// That of a device that a CUDA accelerator has opened. InvalidArgument for others, in the name of
// `transport`.
absl::StatusOr<CudaQueue> QueueOf(Device* device, const std::string& transport);

// Which GPU it is: equal for equal ones on one node, "00000000:3B:00.0".
absl::StatusOr<std::string> PciBusIdOf(int ordinal);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_CUDA_QUEUE_H_
