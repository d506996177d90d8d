// The device that the calling thread's CUDA calls go to.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_CURRENT_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_CURRENT_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "device/cuda/cuda_driver.h"

namespace sluice {

// Makes a device's primary context current for the calling thread, and what was current again when
// destroyed. Our callers' threads have devices of their own choice, or none.
//
// cudaSetDevice would not do. It makes a context on the device that it goes back to: GPU 0 for a
// thread that never chose one. That takes hundreds of MiB there for each rank, and fails where GPU
// 0 is exclusive. Nor would it do to change nothing where the device is the right one already. A
// thread may have no context then, and functions of the driver fail on it.
//
// Meanwhile the thread does not heed captures of streams into graphs. By default, a capture of one
// thread's forbids queries and allocations to all: they fail, and so does the capture. None of ours
// is about a captured stream.
class CurrentCudaDevice {
 public:
  explicit CurrentCudaDevice(int ordinal) : status_(Enter(ordinal)) {}
  CurrentCudaDevice(const CurrentCudaDevice&) = delete;
  CurrentCudaDevice& operator=(const CurrentCudaDevice&) = delete;
  ~CurrentCudaDevice();

  // OK if it has become current.
  const absl::Status& status() const { return status_; }

 private:
  absl::Status Enter(int ordinal);

  const CudaDriver* driver_ = nullptr;  // set: the capture mode is ours
  cudaStreamCaptureMode mode_before_ = cudaStreamCaptureModeGlobal;
  bool pushed_ = false;  // or it was current before
  const absl::Status status_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_CURRENT_H_
