// CUDA devices for sessions. Link sluice::cuda.
#ifndef SLUICE_CUDA_H_
#define SLUICE_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "sluice/accelerator.h"

namespace sluice {

struct CudaOptions {
  // A number among the devices that this process sees. Not set: the calling thread's current
  // device, which is 0 unless somebody chose another.
  absl::optional<int> ordinal = absl::nullopt;
  // Whether devices record when they were busy, for traces.
  bool record_spans = false;
};

// A GPU. FailedPrecondition without a driver, with one that is too old (the message has both
// versions), or without a device; InvalidArgument for an ordinal that no device here has.
absl::StatusOr<std::shared_ptr<Accelerator>> MakeCudaAccelerator(const CudaOptions& options = {});

class Fence;  // src/device/device.h

// A place in the work of a stream, for other streams and the host to wait for. A small value:
// copies name the same place. The stream may end before the mark does. Thread: any, one at a time.
class CudaMark {
 public:
  // The end of what `stream` of GPU `ordinal` holds now. Waits for nothing.
  static absl::StatusOr<CudaMark> Make(int ordinal, StreamHandle stream);

  // All work that `stream`, of any GPU, gets from now on comes after the mark. Waits for nothing.
  absl::Status HoldBack(StreamHandle stream) const;
  // True once the mark's stream has got past it. Waits for nothing.
  absl::StatusOr<bool> Passed() const;

 private:
  explicit CudaMark(std::shared_ptr<Fence> fence) : fence_(std::move(fence)) {}

  std::shared_ptr<Fence> fence_;
};

struct CudaIpcOptions {
  // Memory of this rank stays open on others from one run to the next. Memory that this rank frees
  // meanwhile is free only when the others close it: at the next Compile or Drop, or at the
  // session's end. This is the most that others may have open beside memory in use. Beyond it,
  // memory that is new to them goes through staging.
  int64_t open_bytes_max = int64_t{32} << 30;
};

// Carries buckets between GPUs of one node, and between processes on one GPU. The receiver copies
// out of the sender's memory, where that is of cudaMalloc, or else out of the session's staging. A
// process need not see the others' GPUs. InvalidArgument for a negative limit.
absl::StatusOr<std::shared_ptr<TransportMaker>> MakeCudaIpcTransport(
    std::shared_ptr<Accelerator> accelerator, const CudaIpcOptions& options = {});

// Not of cudaStreamPerThread, which is another stream on each thread: Start refuses it.
inline StreamHandle ToHandle(cudaStream_t stream) { return {stream}; }

}  // namespace sluice

#endif  // SLUICE_CUDA_H_
