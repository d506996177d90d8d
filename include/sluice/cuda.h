// CUDA devices for sessions. Link sluice::cuda.
#ifndef SLUICE_CUDA_H_
#define SLUICE_CUDA_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/statusor.h"
#include "sluice/accelerator.h"

namespace sluice {

struct CudaOptions {
  // Of the devices that this process sees. Negative: the one that is current for the calling
  // thread, which is 0 unless somebody chose another.
  int ordinal = -1;
  // Whether devices record when they were busy, for traces.
  bool record_spans = false;
};

// A GPU. FailedPrecondition without a driver, with one that is too old (the message has both
// versions), or without a device; InvalidArgument for an ordinal beyond the devices there are.
absl::StatusOr<std::shared_ptr<Accelerator>> MakeCudaAccelerator(const CudaOptions& options = {});

// Carries buckets between GPUs of one node, and between processes on one GPU: the receiver copies
// out of the sender's memory, which must be of cudaMalloc, or staging of the session.
absl::StatusOr<std::shared_ptr<TransportMaker>> MakeCudaIpcTransport(
    std::shared_ptr<Accelerator> accelerator);

inline StreamHandle ToHandle(cudaStream_t stream) { return {stream}; }

}  // namespace sluice

#endif  // SLUICE_CUDA_H_
