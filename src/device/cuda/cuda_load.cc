// Asks for each kernel's attributes, which takes its code.
#include "device/cuda/cuda_load.h"

#include <cuda_runtime_api.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/cuda_kernels.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

bool IsOfMissingCode(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidKernelImage:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorUnsupportedPtxVersion:
      return true;
    default:
      return false;
  }
}

// "cuda:1 is sm_75".
absl::StatusOr<std::string> Describe(int ordinal) {
  int major = 0;
  int minor = 0;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute,
                              (&major, cudaDevAttrComputeCapabilityMajor, ordinal));
  SLUICE_CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute,
                              (&minor, cudaDevAttrComputeCapabilityMinor, ordinal));
  return absl::StrCat("cuda:", ordinal, " is sm_", major, minor);
}

}  // namespace

absl::Status LoadCudaKernels(int ordinal) {
  for (cudaError_t (*const load)() : {LoadMoves, LoadSmallCopies, LoadCasts, LoadTransposes,
                                      LoadReductions, LoadNormalizations, LoadPixels}) {
    const cudaError_t error = load();
    if (error == cudaSuccess) continue;
    absl::Status status = CudaStatus(error, "cudaFuncGetAttributes");
    if (!IsOfMissingCode(error)) return status;
    SLUICE_ASSIGN_OR_RETURN(const std::string device, Describe(ordinal));
    return MakeError(absl::StatusCode::kFailedPrecondition, "the GPU code was built for ",
                     SLUICE_CUDA_CODE, ", and ", device, ": ", status);
  }
  return absl::OkStatus();
}

}  // namespace sluice
