// Halves of copies, and who uses a slot until when.
#include "device/cuda/cuda_bounce.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/cuda/cuda_event.h"
#include "device/cuda/cuda_memory.h"
#include "device/strided_copy.h"
#include "sluice/tensor.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

// The address that element 0 would have.
template <typename Byte>
Byte* FirstElement(Byte* slot, int64_t begin, int64_t element_bytes) {
  return slot - begin * element_bytes;
}

}  // namespace

void BouncedCopy::Assign(const StridedCopy& copy, bool to_gpu) {
  first_ = second_ = copy;
  const DType dtype = to_gpu ? copy.src_dtype : copy.dst_dtype;
  element_bytes_ = DTypeBytes(dtype);
  first_.dst_dtype = second_.src_dtype = dtype;
  first_.dst_kind = second_.src_kind = DeviceKind::kCudaHost;
  const auto dims = static_cast<size_t>(copy.dims);
  size_t total = 0;
  for (size_t d = 0; d < dims; ++d) total += copy.runs[d].size();
  runs_.clear();
  runs_.reserve(2 * total);
  int64_t stride = element_bytes_;
  for (size_t d = dims; d-- > 0;) {
    first_.dst_strides[d] = second_.src_strides[d] = stride;
    const size_t count = copy.runs[d].size();
    const size_t start = runs_.size();
    int64_t position = 0;
    for (const Stretch& run : copy.runs[d]) {
      runs_.push_back({run.src, position, run.length});
      position += run.length;
    }
    for (size_t i = 0; i < count; ++i) {
      runs_.push_back({runs_[start + i].dst, copy.runs[d][i].dst, copy.runs[d][i].length});
    }
    first_.runs[d] = absl::MakeConstSpan(runs_).subspan(start, count);
    second_.runs[d] = absl::MakeConstSpan(runs_).subspan(start + count, count);
    stride *= position;
  }
}

StridedCopy BouncedCopy::FirstHalf(std::byte* slot, int64_t begin, int64_t end) const {
  StridedCopy half = first_;
  half.dst = FirstElement(slot, begin, element_bytes_);
  half.begin = begin;
  half.end = end;
  return half;
}

StridedCopy BouncedCopy::SecondHalf(const std::byte* slot, int64_t begin, int64_t end) const {
  StridedCopy half = second_;
  half.src = FirstElement(slot, begin, element_bytes_);
  half.begin = begin;
  half.end = end;
  return half;
}

absl::StatusOr<std::unique_ptr<BounceRing>> BounceRing::Create(int ordinal, int64_t bytes) {
  constexpr int64_t kAlignment = 64;
  auto ring = absl::WrapUnique(new BounceRing());
  ring->slot_bytes_ = bytes / static_cast<int64_t>(kSlots) / kAlignment * kAlignment;
  if (ring->slot_bytes_ == 0) {
    return absl::InvalidArgumentError("too little pinned memory to copy through");
  }
  SLUICE_ASSIGN_OR_RETURN(ring->memory_,
                          AllocatePinned(ordinal, static_cast<size_t>(ring->slot_bytes_) * kSlots,
                                         "pinned memory to copy through"));
  std::byte* data = ring->memory_.data();
  for (Slot& slot : ring->slots_) {
    SLUICE_ASSIGN_OR_RETURN(slot.passed, UniqueCudaEvent::Create());
    slot.data = data;
    data += ring->slot_bytes_;
  }
  return ring;
}

absl::StatusOr<BounceRing::Slot*> BounceRing::Free() {
  if (awaited_ == kSlots) return nullptr;
  Slot& slot = slots_[next_];
  if (slot.busy) {
    SLUICE_ASSIGN_OR_RETURN(const bool passed, slot.passed.Passed());
    if (!passed) return nullptr;
    slot.busy = false;
  }
  return &slot;
}

absl::Status BounceRing::Sent(cudaStream_t stream) {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % kSlots;
  slot.busy = true;
  return slot.passed.Record(stream);
}

absl::Status BounceRing::Awaited(cudaStream_t stream) {
  ++awaited_;
  return Sent(stream);
}

absl::StatusOr<BounceRing::Slot*> BounceRing::Arrived() {
  if (awaited_ == 0) return nullptr;
  Slot& slot = slots_[(next_ + kSlots - awaited_) % kSlots];
  SLUICE_ASSIGN_OR_RETURN(const bool passed, slot.passed.Passed());
  if (!passed) return nullptr;
  slot.busy = false;
  return &slot;
}

void BounceRing::Taken() {
  SLUICE_CHECK(awaited_ > 0, "bounce: nothing was awaited");
  --awaited_;
}

}  // namespace sluice
