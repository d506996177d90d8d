// Errors of the CUDA runtime as statuses.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_ERROR_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

// OK for cudaSuccess; otherwise "cudaMalloc failed: out of memory (cudaErrorMemoryAllocation)" of
// the fitting code, ": 8 bytes" appended for details "8 bytes". Also takes the error from the
// thread's last one, so that nobody after us finds it there.
absl::Status CudaStatus(cudaError_t error, absl::string_view call, absl::string_view details = "");

// Returns from the function with the status of a call that fails: SLUICE_CUDA_RETURN_IF_ERROR(
// cudaSetDevice, (0)).
#define SLUICE_CUDA_RETURN_IF_ERROR(function, arguments)                        \
  do {                                                                          \
    if (const cudaError_t error_ = function arguments; error_ != cudaSuccess) { \
      return ::sluice::CudaStatus(error_, #function);                           \
    }                                                                           \
  } while (false)

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_ERROR_H_
