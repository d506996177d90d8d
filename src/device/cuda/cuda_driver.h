// The functions of the CUDA driver that its runtime has no equal of.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_DRIVER_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_DRIVER_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// They return a CUresult, whose numbers are those of cudaError_t. Contexts are a CUcontext.
struct CudaDriver {
  int (*init)(unsigned flags);
  int (*device_get)(int* device, int ordinal);
  int (*primary_context_retain)(void** context, int device);
  int (*context_get_current)(void** context);
  int (*context_push)(void* context);
  int (*context_pop)(void** context);
  int (*thread_exchange_capture_mode)(cudaStreamCaptureMode* mode);

  // The driver of this process, made ready by cuInit; FailedPrecondition if it lacks one of them.
  // Thread: any.
  static absl::StatusOr<const CudaDriver*> Get();

  // The device's primary context, which is the runtime's too. It is made if there is none, and
  // stays until the process ends. Thread: any.
  absl::StatusOr<void*> PrimaryContext(int ordinal) const;
};

// The driver's function of that name, as of CUDA 12.0. FailedPrecondition if it has none. It is
// found through the runtime, so that no program is linked with the driver. Thread: any.
absl::StatusOr<void*> FindCudaDriverFunction(const char* name);

// As CudaStatus, of a function of the driver.
absl::Status CudaDriverStatus(int result, absl::string_view call, absl::string_view details = "");

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_DRIVER_H_
