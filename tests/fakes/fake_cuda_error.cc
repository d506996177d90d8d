// Names and texts of the fake CUDA runtime's errors.
#include <algorithm>
#include <array>

#include "cuda_runtime_api.h"

namespace {

struct Text {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define SLUICE_FAKE_ERROR(name, text) \
  Text { name, #name, text }

constexpr std::array kTexts = {
    SLUICE_FAKE_ERROR(cudaSuccess, "no error"),
    SLUICE_FAKE_ERROR(cudaErrorInvalidValue, "invalid argument"),
    SLUICE_FAKE_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    SLUICE_FAKE_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    SLUICE_FAKE_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    SLUICE_FAKE_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    SLUICE_FAKE_ERROR(cudaErrorStubLibrary, "CUDA driver is a stub library"),
    SLUICE_FAKE_ERROR(cudaErrorInsufficientDriver,
                      "CUDA driver version is insufficient for CUDA runtime version"),
    SLUICE_FAKE_ERROR(cudaErrorDevicesUnavailable,
                      "CUDA-capable device(s) is/are busy or unavailable"),
    SLUICE_FAKE_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    SLUICE_FAKE_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    SLUICE_FAKE_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    SLUICE_FAKE_ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    SLUICE_FAKE_ERROR(cudaErrorDeviceUninitialized, "invalid device context"),
    SLUICE_FAKE_ERROR(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed"),
    SLUICE_FAKE_ERROR(cudaErrorAlreadyMapped, "resource already mapped"),
    SLUICE_FAKE_ERROR(cudaErrorNoKernelImageForDevice,
                      "no kernel image is available for execution on the device"),
    SLUICE_FAKE_ERROR(cudaErrorPeerAccessUnsupported,
                      "peer access is not supported between these two devices"),
    SLUICE_FAKE_ERROR(cudaErrorOperatingSystem,
                      "OS call failed or operation not supported on this OS"),
    SLUICE_FAKE_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    SLUICE_FAKE_ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    SLUICE_FAKE_ERROR(cudaErrorNotReady, "device not ready"),
    SLUICE_FAKE_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    SLUICE_FAKE_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    SLUICE_FAKE_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    SLUICE_FAKE_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    SLUICE_FAKE_ERROR(cudaErrorHostMemoryAlreadyRegistered,
                      "part or all of the requested memory range is already mapped"),
    SLUICE_FAKE_ERROR(cudaErrorHostMemoryNotRegistered,
                      "pointer does not correspond to a registered memory region"),
    SLUICE_FAKE_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    SLUICE_FAKE_ERROR(cudaErrorNotSupported, "operation not supported"),
    SLUICE_FAKE_ERROR(cudaErrorSystemNotReady, "system not yet initialized"),
    SLUICE_FAKE_ERROR(cudaErrorSystemDriverMismatch,
                      "system has unsupported display driver / cuda driver combination"),
    SLUICE_FAKE_ERROR(cudaErrorIllegalState,
                      "the operation cannot be performed in the present state"),
    SLUICE_FAKE_ERROR(cudaErrorStreamCaptureUnsupported,
                      "operation not permitted when stream is capturing"),
    SLUICE_FAKE_ERROR(cudaErrorStreamCaptureInvalidated,
                      "operation failed due to a previous error during capture"),
    SLUICE_FAKE_ERROR(cudaErrorStreamCaptureIsolation,
                      "dependency created on uncaptured work in another stream"),
    SLUICE_FAKE_ERROR(
        cudaErrorStreamCaptureImplicit,
        "operation would make the legacy stream depend on a capturing blocking stream"),
    SLUICE_FAKE_ERROR(cudaErrorStreamCaptureWrongThread,
                      "attempt to terminate a thread-local capture sequence from another thread"),
    SLUICE_FAKE_ERROR(cudaErrorUnknown, "unknown error"),
};

#undef SLUICE_FAKE_ERROR

const Text* Find(cudaError_t error) {
  const auto* const found = std::find_if(kTexts.begin(), kTexts.end(),
                                         [&](const Text& text) { return text.error == error; });
  return found == kTexts.end() ? nullptr : found;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  const Text* const found = Find(error);
  return found == nullptr ? "unrecognized error code" : found->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const Text* const found = Find(error);
  return found == nullptr ? "unrecognized error code" : found->text;
}

}  // extern "C"
