// Kernels that tests put into a stream of the caller's: functions of the host that work on device
// memory. Over the fake they run as kernels; on a GPU between a copy out of the memory and one
// back.
#ifndef SLUICE_TESTS_CUDA_CUDA_STREAM_KERNELS_H_
#define SLUICE_TESTS_CUDA_CUDA_STREAM_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

#include "sluice/tensor.h"

namespace sluice::session_test {

class StreamKernels {
 public:
  // For a stream of the current device, or its default stream, and memory of up to `bytes_max`.
  StreamKernels(cudaStream_t stream, size_t bytes_max);
  // The stream has to be idle.
  ~StreamKernels();
  StreamKernels(const StreamKernels&) = delete;
  StreamKernels& operator=(const StreamKernels&) = delete;

  // The kernel runs after what the stream holds, and before what it gets later. It finds what is in
  // the `bytes` at `data` then, and leaves there what it has written. `data` is device memory, or
  // pinned. The stream's device has to be current. The kernel may make no call of CUDA.
  void Launch(void* data, DeviceKind kind, size_t bytes, std::function<void(void*)> kernel);

 private:
  const cudaStream_t stream_;
  void* scratch_ = nullptr;  // of pinned memory, on a GPU: the stream's kernels take turns with it
};

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_CUDA_CUDA_STREAM_KERNELS_H_
