// Names of the fake CUDA runtime's errors. Their texts are the names again: nobody may depend on
// the vendor's words.
#include <algorithm>
#include <array>

#include "cuda_runtime_api.h"

namespace {

struct Name {
  cudaError_t error;
  const char* name;
};

#define ERROR(name) \
  Name { name, #name }
// clang-format off
constexpr std::array kNames = {
    ERROR(cudaSuccess), ERROR(cudaErrorInvalidValue), ERROR(cudaErrorMemoryAllocation),
    ERROR(cudaErrorInvalidPitchValue), ERROR(cudaErrorInvalidDevicePointer),
    ERROR(cudaErrorInvalidMemcpyDirection), ERROR(cudaErrorStubLibrary),
    ERROR(cudaErrorInsufficientDriver), ERROR(cudaErrorDevicesUnavailable),
    ERROR(cudaErrorInvalidDeviceFunction), ERROR(cudaErrorNoDevice),
    ERROR(cudaErrorInvalidDevice), ERROR(cudaErrorInvalidKernelImage),
    ERROR(cudaErrorDeviceUninitialized), ERROR(cudaErrorMapBufferObjectFailed),
    ERROR(cudaErrorAlreadyMapped), ERROR(cudaErrorNoKernelImageForDevice),
    ERROR(cudaErrorPeerAccessUnsupported), ERROR(cudaErrorOperatingSystem),
    ERROR(cudaErrorInvalidResourceHandle), ERROR(cudaErrorSymbolNotFound),
    ERROR(cudaErrorNotReady), ERROR(cudaErrorIllegalAddress),
    ERROR(cudaErrorLaunchOutOfResources), ERROR(cudaErrorLaunchTimeout),
    ERROR(cudaErrorPeerAccessAlreadyEnabled), ERROR(cudaErrorHostMemoryAlreadyRegistered),
    ERROR(cudaErrorHostMemoryNotRegistered), ERROR(cudaErrorLaunchFailure),
    ERROR(cudaErrorNotSupported), ERROR(cudaErrorSystemNotReady),
    ERROR(cudaErrorSystemDriverMismatch), ERROR(cudaErrorIllegalState),
    ERROR(cudaErrorStreamCaptureUnsupported), ERROR(cudaErrorStreamCaptureInvalidated),
    ERROR(cudaErrorStreamCaptureIsolation), ERROR(cudaErrorStreamCaptureImplicit),
    ERROR(cudaErrorStreamCaptureWrongThread), ERROR(cudaErrorUnknown),
};
// clang-format on
#undef ERROR

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  const auto* const found = std::find_if(kNames.begin(), kNames.end(),
                                         [&](const Name& name) { return name.error == error; });
  return found == kNames.end() ? "unrecognized error code" : found->name;
}

const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

}  // extern "C"
