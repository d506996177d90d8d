// The device that the calling thread's CUDA calls go to.
#ifndef SLUICE_SRC_DEVICE_CUDA_CURRENT_H_
#define SLUICE_SRC_DEVICE_CUDA_CURRENT_H_

#include "absl/status/status.h"

namespace sluice {

// Makes a device current for the calling thread, and what was current again when destroyed: our
// callers' threads have devices of their own choice.
class CurrentCudaDevice {
 public:
  explicit CurrentCudaDevice(int ordinal);
  CurrentCudaDevice(const CurrentCudaDevice&) = delete;
  CurrentCudaDevice& operator=(const CurrentCudaDevice&) = delete;
  ~CurrentCudaDevice();

  // OK if it has become current.
  const absl::Status& status() const { return status_; }

 private:
  static constexpr int kNone = -1;
  int before_ = kNone;  // to go back to
  absl::Status status_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CURRENT_H_
