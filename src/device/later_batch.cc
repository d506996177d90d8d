// Copying what a batch refers to, and carrying it out.
#include "device/later_batch.h"

#include "absl/types/span.h"
#include "device/carry_out.h"

namespace sluice {

void LaterBatch::Assign(const CopyBatch& batch) {
  cookie_ = batch.cookie;
  copies_.assign(batch.copies.begin(), batch.copies.end());
  reductions_.assign(batch.reductions.begin(), batch.reductions.end());
  normalizations_.assign(batch.normalizations.begin(), batch.normalizations.end());
  runs_.clear();
  for (const StridedCopy& copy : copies_) {
    for (int d = 0; d < copy.dims; ++d) {
      const absl::Span<const Stretch> runs = copy.runs[static_cast<size_t>(d)];
      runs_.insert(runs_.end(), runs.begin(), runs.end());
    }
  }
  // They stay where they are from now on.
  size_t at = 0;
  for (StridedCopy& copy : copies_) {
    for (int d = 0; d < copy.dims; ++d) {
      absl::Span<const Stretch>& runs = copy.runs[static_cast<size_t>(d)];
      const size_t count = runs.size();
      runs = absl::MakeConstSpan(runs_).subspan(at, count);
      at += count;
    }
  }
  factors_.clear();
  for (const Normalization& normalization : normalizations_) {
    if (normalization.factors != nullptr) factors_.push_back(*normalization.factors);
  }
  const ChannelFactors* next = factors_.data();
  for (Normalization& normalization : normalizations_) {
    if (normalization.factors != nullptr) normalization.factors = next++;
  }
}

void LaterBatch::CarryOut() const {
  sluice::CarryOut(
      {.copies = copies_, .reductions = reductions_, .normalizations = normalizations_});
}

int64_t LaterBatch::BytesOf(DeviceKind kind) const {
  int64_t bytes = 0;
  for (const StridedCopy& copy : copies_) {
    if (copy.src_kind != kind && copy.dst_kind != kind) continue;
    bytes += (copy.end - copy.begin) * DTypeBytes(copy.dst_dtype);
  }
  for (const Reduction& reduction : reductions_) {
    if (reduction.src_kind != kind && reduction.dst_kind != kind) continue;
    bytes += reduction.elements * DTypeBytes(reduction.dtype);
  }
  for (const Normalization& normalization : normalizations_) {
    if (normalization.src_kind != kind && normalization.dst_kind != kind) continue;
    bytes += normalization.elements * DTypeBytes(normalization.dst_dtype);
  }
  return bytes;
}

}  // namespace sluice
