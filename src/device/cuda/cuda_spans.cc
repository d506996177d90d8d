// Turns the time between events into times of day.
#include "device/cuda/cuda_spans.h"

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/cuda_event.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Times between events have 24 bits: measured from further back they are not exact enough.
constexpr int64_t kMaxReferenceAgeNs = 2'000'000'000;

}  // namespace

absl::StatusOr<std::unique_ptr<CudaSpans>> CudaSpans::Create(cudaStream_t stream) {
  auto spans = absl::WrapUnique(new CudaSpans(stream));
  const auto make = [](UniqueCudaEvent* event) -> absl::Status {
    SLUICE_ASSIGN_OR_RETURN(*event, UniqueCudaEvent::Create(UniqueCudaEvent::Timing::kYes));
    return absl::OkStatus();
  };
  SLUICE_RETURN_IF_ERROR(make(&spans->reference_));
  for (Open& open : spans->ring_) {
    SLUICE_RETURN_IF_ERROR(make(&open.begin));
    SLUICE_RETURN_IF_ERROR(make(&open.end));
  }
  SLUICE_RETURN_IF_ERROR(spans->reference_.Record(stream));
  SLUICE_CUDA_RETURN_IF_ERROR(cudaEventSynchronize, (spans->reference_.get()));
  spans->reference_ns_ = MonotonicNs();
  return spans;
}

absl::Status CudaSpans::Begin(uint64_t cookie) {
  recording_ = count_ < ring_.size();
  if (!recording_) return absl::OkStatus();
  Open& open = ring_[(first_ + count_) % ring_.size()];
  open.cookie = cookie;
  return open.begin.Record(stream_);
}

absl::Status CudaSpans::End() {
  if (!std::exchange(recording_, false)) return absl::OkStatus();
  return ring_[(first_ + count_++) % ring_.size()].end.Record(stream_);
}

absl::StatusOr<int64_t> CudaSpans::TimeOf(const UniqueCudaEvent& event) const {
  float milliseconds = 0;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaEventElapsedTime, (&milliseconds, reference_.get(), event.get()));
  return reference_ns_ + std::llround(double{milliseconds} * 1e6);
}

absl::Status CudaSpans::Take(std::vector<DeviceSpan>* spans) {
  for (; count_ > 0; --count_, first_ = (first_ + 1) % ring_.size()) {
    Open& open = ring_[first_];
    SLUICE_ASSIGN_OR_RETURN(const bool ended, open.end.Passed());
    if (!ended) break;
    SLUICE_ASSIGN_OR_RETURN(const int64_t begin_ns, TimeOf(open.begin));
    SLUICE_ASSIGN_OR_RETURN(const int64_t end_ns, TimeOf(open.end));
    spans->push_back({open.cookie, begin_ns, end_ns});
    if (end_ns - reference_ns_ > kMaxReferenceAgeNs) {
      std::swap(reference_, open.end);
      reference_ns_ = end_ns;
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice
