// Finds a GPU, and says why it cannot be used.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"
#include "device/cuda/cuda_error.h"
#include "device/device.h"
#include "sluice/accelerator.h"
#include "sluice/cuda.h"
#include "sluice/tensor.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

class CudaAccelerator final : public Accelerator {
 public:
  CudaAccelerator(const CudaDeviceOptions& options, std::string description)
      : options_(options), description_(std::move(description)) {}

  std::string description() const override { return description_; }
  DeviceKind kind() const override { return DeviceKind::kCuda; }
  int32_t ordinal() const override { return options_.ordinal; }

  absl::StatusOr<std::unique_ptr<Device>> OpenDevice() override {
    return CudaDevice::Create(options_);
  }
  absl::Status CheckMemory(const void* data, DeviceKind kind) const override;
  absl::Status CheckStream(StreamHandle stream) const override;
  absl::StatusOr<MemoryRange> FindMemory(const void* data) const override;

 private:
  const CudaDeviceOptions options_;
  const std::string description_;
};

// CUDA's numbers are 1000 * major + 10 * minor.
std::string VersionName(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::string_view KindName(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return "host memory";
    case DeviceKind::kCuda:
      return "device memory";
    case DeviceKind::kCudaHost:
      return "pinned host memory";
  }
  return "memory of no known kind";
}

std::string MemoryName(const cudaPointerAttributes& attributes) {
  switch (attributes.type) {
    case cudaMemoryTypeHost:
      return "pinned host memory";
    case cudaMemoryTypeDevice:
      return absl::StrCat("memory of cuda:", attributes.device);
    case cudaMemoryTypeManaged:
      return "managed memory";
    default:
      return "host memory that CUDA does not know";
  }
}

bool IsAs(const cudaPointerAttributes& attributes, DeviceKind kind, int ordinal) {
  switch (kind) {
    case DeviceKind::kCpu:
      // The host reaches all but a GPU's own memory.
      return attributes.type != cudaMemoryTypeDevice;
    case DeviceKind::kCuda:
      return attributes.type == cudaMemoryTypeManaged ||
             (attributes.type == cudaMemoryTypeDevice && attributes.device == ordinal);
    case DeviceKind::kCudaHost:
      return attributes.type == cudaMemoryTypeHost || attributes.type == cudaMemoryTypeManaged;
  }
  return false;
}

absl::Status CudaAccelerator::CheckMemory(const void* data, DeviceKind kind) const {
  const CurrentCudaDevice current(options_.ordinal);
  if (!current.status().ok()) return current.status();
  cudaPointerAttributes attributes = {};
  SLUICE_CUDA_RETURN_IF_ERROR(cudaPointerGetAttributes, (&attributes, data));
  if (IsAs(attributes, kind, options_.ordinal)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("said to be ", KindName(kind), kind == DeviceKind::kCuda ? " of cuda:" : "",
                   kind == DeviceKind::kCuda ? absl::StrCat(options_.ordinal) : "", ", but it is ",
                   MemoryName(attributes)));
}

absl::Status CudaAccelerator::CheckStream(StreamHandle stream) const {
  if (stream.value == cudaStreamPerThread) {
    return absl::InvalidArgumentError(
        "cudaStreamPerThread is another stream on each thread: name one that is the same on all");
  }
  // A default stream is the current device's.
  const CurrentCudaDevice current(options_.ordinal);
  if (!current.status().ok()) return current.status();
  // First: cudaStreamGetDevice ends the capture of its stream.
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaStreamIsCapturing,
                              (static_cast<cudaStream_t>(stream.value), &capture));
  if (capture != cudaStreamCaptureStatusNone) {
    return absl::FailedPreconditionError(
        "the stream is being captured into a graph, which cannot hold what is done with other "
        "ranks");
  }
  int device = 0;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaStreamGetDevice,
                              (static_cast<cudaStream_t>(stream.value), &device));
  if (device == options_.ordinal) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the stream is of cuda:", device, ", but work is to be done on cuda:", options_.ordinal));
}

absl::StatusOr<MemoryRange> CudaAccelerator::FindMemory(const void* data) const {
  constexpr int kBufferId = 7;  // CU_POINTER_ATTRIBUTE_BUFFER_ID
  using FindRange = int (*)(unsigned long long* base, size_t* bytes, unsigned long long address);
  using Ask = int (*)(void* answer, int attribute, unsigned long long address);
  static const absl::StatusOr<void*> find_range = FindCudaDriverFunction("cuMemGetAddressRange");
  if (!find_range.ok()) return find_range.status();
  static const absl::StatusOr<void*> ask = FindCudaDriverFunction("cuPointerGetAttribute");
  if (!ask.ok()) return ask.status();
  const CurrentCudaDevice current(options_.ordinal);
  if (!current.status().ok()) return current.status();
  const auto address = static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(data));
  unsigned long long base = 0;
  MemoryRange range;
  int result = reinterpret_cast<FindRange>(*find_range)(&base, &range.bytes, address);
  if (result != 0) return CudaDriverStatus(result, "cuMemGetAddressRange");
  result = reinterpret_cast<Ask>(*ask)(&range.id, kBufferId, address);
  if (result != 0) return CudaDriverStatus(result, "cuPointerGetAttribute");
  range.begin = static_cast<const std::byte*>(data) - (address - base);
  return range;
}

// Whether CUDA can be used here at all.
absl::StatusOr<int> CountDevices() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return devices;
  absl::Status status =
      CudaStatus(error == cudaSuccess ? cudaErrorNoDevice : error, "cudaGetDeviceCount");
  if (error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary) {
    int driver = 0;
    int runtime = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
    if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) runtime = CUDART_VERSION;
    (void)cudaGetLastError();
    if (driver == 0) {
      return MakeError(absl::StatusCode::kFailedPrecondition,
                       "no CUDA driver is installed, or it cannot be used: ", status);
    }
    return MakeError(absl::StatusCode::kFailedPrecondition, "the CUDA driver is for CUDA ",
                     VersionName(driver), " at most, but this is built for CUDA ",
                     VersionName(runtime), ": ", status);
  }
  if (error == cudaSuccess || error == cudaErrorNoDevice) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     "there is no CUDA device here: ", status);
  }
  return status;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Accelerator>> MakeCudaAccelerator(const CudaOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(const int devices, CountDevices());
  CudaDeviceOptions device;
  device.record_spans = options.record_spans;
  if (options.ordinal) {
    device.ordinal = *options.ordinal;
  } else {
    SLUICE_CUDA_RETURN_IF_ERROR(cudaGetDevice, (&device.ordinal));
  }
  if (device.ordinal < 0 || device.ordinal >= devices) {
    return absl::InvalidArgumentError(absl::StrCat("there is no cuda:", device.ordinal,
                                                   " here: this process sees ", devices,
                                                   devices == 1 ? " device" : " devices"));
  }
  cudaDeviceProp properties;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties, (&properties, device.ordinal));
  return std::make_shared<CudaAccelerator>(
      device, absl::StrCat("cuda:", device.ordinal, " (", properties.name, ")"));
}

}  // namespace sluice
