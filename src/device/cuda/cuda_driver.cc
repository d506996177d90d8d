// Finds the driver's functions, and retains primary contexts.
#include "device/cuda/cuda_driver.h"

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "device/cuda/cuda_error.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// More GPUs than any machine has.
constexpr size_t kDevicesMax = 256;

template <class Function>
absl::Status Find(const char* name, Function* function) {
  const absl::StatusOr<void*> address = FindCudaDriverFunction(name);
  if (address.ok()) *function = reinterpret_cast<Function>(*address);
  return address.status();
}

absl::Status FindAll(CudaDriver* driver) {
  absl::Status status = Find("cuInit", &driver->init);
  status.Update(Find("cuDeviceGet", &driver->device_get));
  status.Update(Find("cuDevicePrimaryCtxRetain", &driver->primary_context_retain));
  status.Update(Find("cuCtxGetCurrent", &driver->context_get_current));
  status.Update(Find("cuCtxPushCurrent", &driver->context_push));
  status.Update(Find("cuCtxPopCurrent", &driver->context_pop));
  status.Update(Find("cuThreadExchangeStreamCaptureMode", &driver->thread_exchange_capture_mode));
  return status.ok() ? CudaDriverStatus(driver->init(0), "cuInit") : status;
}

// The driver and its contexts. Never destroyed: threads may use them when the process ends.
struct Found {
  std::mutex mutex;
  CudaDriver driver;
  std::atomic<bool> has_driver = false;
  std::array<std::atomic<void*>, kDevicesMax> contexts = {};  // by ordinal
};

Found& TheFound() {
  static auto* const found = new Found;
  return *found;
}

}  // namespace

absl::StatusOr<void*> FindCudaDriverFunction(const char* name) {
  constexpr unsigned kVersion = 12000;  // what a function of this name does as of that one
  constexpr unsigned long long kDefault = 0;
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &address, kVersion, kDefault, &found);
  if (error != cudaSuccess) return CudaStatus(error, "cudaGetDriverEntryPointByVersion", name);
  if (found == cudaDriverEntryPointSuccess && address != nullptr) return address;
  return absl::FailedPreconditionError(absl::StrCat("the CUDA driver has no ", name));
}

absl::StatusOr<const CudaDriver*> CudaDriver::Get() {
  Found& found = TheFound();
  if (found.has_driver) return &found.driver;
  const std::lock_guard lock(found.mutex);
  if (found.has_driver) return &found.driver;
  // A failure is not for ever.
  SLUICE_RETURN_IF_ERROR(FindAll(&found.driver));
  found.has_driver = true;
  return &found.driver;
}

absl::StatusOr<void*> CudaDriver::PrimaryContext(int ordinal) const {
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= kDevicesMax) {
    return absl::InvalidArgumentError(absl::StrCat("there is no cuda:", ordinal));
  }
  Found& found = TheFound();
  std::atomic<void*>& known = found.contexts[static_cast<size_t>(ordinal)];
  if (void* const context = known) return context;
  const std::lock_guard lock(found.mutex);  // it is retained once
  if (void* const context = known) return context;
  int device = 0;
  const std::string of = absl::StrCat("cuda:", ordinal);
  absl::Status status = CudaDriverStatus(device_get(&device, ordinal), "cuDeviceGet", of);
  if (!status.ok()) return status;
  void* context = nullptr;
  SLUICE_RETURN_IF_ERROR(
      CudaDriverStatus(primary_context_retain(&context, device), "cuDevicePrimaryCtxRetain", of));
  known = context;
  return context;
}

absl::Status CudaDriverStatus(int result, absl::string_view call, absl::string_view details) {
  return CudaStatus(static_cast<cudaError_t>(result), call, details);
}

}  // namespace sluice
