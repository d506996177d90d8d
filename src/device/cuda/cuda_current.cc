// Changes the current device only where it is another.
#include "device/cuda_current.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "device/cuda_error.h"

namespace sluice {

CurrentCudaDevice::CurrentCudaDevice(int ordinal) {
  int before = kNone;
  if (const cudaError_t error = cudaGetDevice(&before); error != cudaSuccess) {
    status_ = CudaStatus(error, "cudaGetDevice");
    return;
  }
  if (before == ordinal) return;
  status_ = CudaStatus(cudaSetDevice(ordinal), "cudaSetDevice", absl::StrCat("cuda:", ordinal));
  if (status_.ok()) before_ = before;
}

CurrentCudaDevice::~CurrentCudaDevice() {
  // What was current can be again; if not, there is nobody to tell.
  if (before_ != kNone) (void)cudaSetDevice(before_);
}

}  // namespace sluice
