// Events: places in the work of streams.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_EVENT_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_EVENT_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"

namespace sluice {

// An event of the device that is current when it is made, and when it is destroyed. Movable only.
class UniqueCudaEvent {
 public:
  enum class Timing { kNo, kYes };
  static absl::StatusOr<UniqueCudaEvent> Create(Timing timing = Timing::kNo);

  UniqueCudaEvent() = default;  // none
  UniqueCudaEvent(UniqueCudaEvent&& other) noexcept {
    *this = static_cast<UniqueCudaEvent&&>(other);
  }
  UniqueCudaEvent& operator=(UniqueCudaEvent&& other) noexcept;
  ~UniqueCudaEvent();

  cudaEvent_t get() const { return event_; }

  // The event's device is current.
  absl::Status Record(cudaStream_t stream);
  // True if it has been passed, or never recorded.
  absl::StatusOr<bool> Passed() const;

 private:
  explicit UniqueCudaEvent(cudaEvent_t event) : event_(event) {}
  cudaEvent_t event_ = nullptr;
};

// A fence of the device, which becomes current for its calls.
absl::StatusOr<std::unique_ptr<Fence>> MakeCudaFence(int ordinal);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_EVENT_H_
