// Pushes a context onto the thread's, and pops it; takes the capture mode, and gives it back.
#include "device/cuda/cuda_current.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "device/cuda/cuda_driver.h"
#include "tensor/error_text.h"

namespace sluice {

absl::Status CurrentCudaDevice::Enter(int ordinal) {
  SLUICE_ASSIGN_OR_RETURN(const CudaDriver* const driver, CudaDriver::Get());
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  if (const int result = driver->thread_exchange_capture_mode(&mode); result != 0) {
    return CudaDriverStatus(result, "cuThreadExchangeStreamCaptureMode");
  }
  driver_ = driver;
  mode_before_ = mode;
  SLUICE_ASSIGN_OR_RETURN(void* const context, driver_->PrimaryContext(ordinal));
  void* before = nullptr;
  if (const int result = driver_->context_get_current(&before); result != 0) {
    return CudaDriverStatus(result, "cuCtxGetCurrent");
  }
  if (before == context) return absl::OkStatus();
  if (const int result = driver_->context_push(context); result != 0) {
    return CudaDriverStatus(result, "cuCtxPushCurrent", absl::StrCat("cuda:", ordinal));
  }
  pushed_ = true;
  return absl::OkStatus();
}

CurrentCudaDevice::~CurrentCudaDevice() {
  // The earlier context can be restored; if not, there is nobody to tell.
  void* popped = nullptr;
  if (pushed_) (void)driver_->context_pop(&popped);
  if (driver_ != nullptr) (void)driver_->thread_exchange_capture_mode(&mode_before_);
}

}  // namespace sluice
