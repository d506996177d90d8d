// Events and fences, which are events.
#include "device/cuda/cuda_event.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_error.h"
#include "device/device.h"
#include "sluice/accelerator.h"
#include "sluice/cuda.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

class CudaFence final : public Fence {
 public:
  CudaFence(int ordinal, UniqueCudaEvent event) : ordinal_(ordinal), event_(std::move(event)) {}
  ~CudaFence() override {
    const CurrentCudaDevice current(ordinal_);
    event_ = UniqueCudaEvent();
  }

  absl::Status Record(StreamHandle stream) override {
    const CurrentCudaDevice current(ordinal_);
    if (!current.status().ok()) return current.status();
    return event_.Record(static_cast<cudaStream_t>(stream.value));
  }

  absl::Status HoldBack(StreamHandle stream) override {
    const CurrentCudaDevice current(ordinal_);
    if (!current.status().ok()) return current.status();
    return CudaStatus(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream.value), event_.get(), 0),
                      "cudaStreamWaitEvent");
  }

  absl::StatusOr<bool> Passed() override {
    const CurrentCudaDevice current(ordinal_);
    if (!current.status().ok()) return current.status();
    return event_.Passed();
  }

 private:
  const int ordinal_;
  UniqueCudaEvent event_;
};

}  // namespace

absl::StatusOr<UniqueCudaEvent> UniqueCudaEvent::Create(Timing timing) {
  cudaEvent_t event = nullptr;
  const unsigned flags = timing == Timing::kYes ? cudaEventDefault : cudaEventDisableTiming;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags, (&event, flags));
  return UniqueCudaEvent(event);
}

UniqueCudaEvent& UniqueCudaEvent::operator=(UniqueCudaEvent&& other) noexcept {
  std::swap(event_, other.event_);
  return *this;
}

UniqueCudaEvent::~UniqueCudaEvent() {
  if (event_ == nullptr) return;
  (void)cudaEventDestroy(event_);
  (void)cudaGetLastError();
}

absl::Status UniqueCudaEvent::Record(cudaStream_t stream) {
  return CudaStatus(cudaEventRecord(event_, stream), "cudaEventRecord");
}

absl::StatusOr<bool> UniqueCudaEvent::Passed() const {
  const cudaError_t error = cudaEventQuery(event_);
  if (error == cudaSuccess) return true;
  if (error == cudaErrorNotReady) {
    // Some versions remember it as the thread's last error.
    (void)cudaGetLastError();
    return false;
  }
  return CudaStatus(error, "cudaEventQuery");
}

absl::StatusOr<std::unique_ptr<Fence>> MakeCudaFence(int ordinal) {
  const CurrentCudaDevice current(ordinal);
  if (!current.status().ok()) return current.status();
  SLUICE_ASSIGN_OR_RETURN(UniqueCudaEvent event, UniqueCudaEvent::Create());
  return std::make_unique<CudaFence>(ordinal, std::move(event));
}

absl::StatusOr<CudaMark> CudaMark::Make(int ordinal, StreamHandle stream) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Fence> fence, MakeCudaFence(ordinal));
  SLUICE_RETURN_IF_ERROR(fence->Record(stream));
  return CudaMark(std::move(fence));
}

absl::Status CudaMark::HoldBack(StreamHandle stream) const { return fence_->HoldBack(stream); }

absl::StatusOr<bool> CudaMark::Passed() const { return fence_->Passed(); }

}  // namespace sluice
