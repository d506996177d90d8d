// Turns the time between events into times of day.
#include "device/cuda/cuda_spans.h"

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstddef>
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

namespace sluice {
namespace {

// Times between events have 24 bits: measured from further back they are not exact enough.
constexpr int64_t kMaxReferenceAgeNs = 2'000'000'000;

}  // namespace

absl::StatusOr<std::unique_ptr<CudaSpans>> CudaSpans::Create(cudaStream_t stream) {
  auto spans = absl::WrapUnique(new CudaSpans(stream));
  const auto make = [](UniqueCudaEvent* event) -> absl::Status {
    absl::StatusOr<UniqueCudaEvent> made = UniqueCudaEvent::Create(UniqueCudaEvent::Timing::kYes);
    if (!made.ok()) return made.status();
    *event = *std::move(made);
    return absl::OkStatus();
  };
  if (absl::Status status = make(&spans->reference_); !status.ok()) return status;
  for (Open& open : spans->ring_) {
    if (absl::Status status = make(&open.begin); !status.ok()) return status;
    if (absl::Status status = make(&open.end); !status.ok()) return status;
  }
  if (absl::Status status = spans->reference_.Record(stream); !status.ok()) return status;
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
    const absl::StatusOr<bool> ended = open.end.Passed();
    if (!ended.ok()) return ended.status();
    if (!*ended) break;
    const absl::StatusOr<int64_t> begin_ns = TimeOf(open.begin);
    if (!begin_ns.ok()) return begin_ns.status();
    const absl::StatusOr<int64_t> end_ns = TimeOf(open.end);
    if (!end_ns.ok()) return end_ns.status();
    spans->push_back({open.cookie, *begin_ns, *end_ns});
    if (*end_ns - reference_ns_ > kMaxReferenceAgeNs) {
      std::swap(reference_, open.end);
      reference_ns_ = *end_ns;
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice
