// Copies what a batch refers to.
#include "device/owned_batch.h"

#include <cstddef>
#include <utility>

#include "absl/types/span.h"
#include "device/device.h"
#include "device/normalization.h"
#include "device/pixel_grid.h"
#include "device/strided_copy.h"
#include "tensor/stretch.h"

namespace sluice {

void OwnedBatch::Assign(const CopyBatch& batch) {
  copies_.assign(batch.copies.begin(), batch.copies.end());
  small_copies_.assign(batch.small_copies.begin(), batch.small_copies.end());
  reductions_.assign(batch.reductions.begin(), batch.reductions.end());
  normalizations_.assign(batch.normalizations.begin(), batch.normalizations.end());
  cookie_ = batch.cookie;
  in_stream_order_ = batch.in_stream_order;
  stage_ = batch.stage;
  after_ = batch.after;
  then_ = batch.then;
  // All runs first: what spans refer to must not move any more.
  runs_.clear();
  for (const StridedCopy& copy : copies_) {
    for (size_t d = 0; d < static_cast<size_t>(copy.dims); ++d) {
      runs_.insert(runs_.end(), copy.runs[d].begin(), copy.runs[d].end());
    }
  }
  size_t first = 0;
  for (StridedCopy& copy : copies_) {
    for (size_t d = 0; d < static_cast<size_t>(copy.dims); ++d) {
      const size_t count = copy.runs[d].size();
      copy.runs[d] = absl::MakeConstSpan(runs_).subspan(first, count);
      first += count;
    }
  }
  AssignFactors();
}

// Keeps equal factors in a row once: one stream of items has mostly the same.
void OwnedBatch::AssignFactors() {
  factors_.clear();
  const ChannelFactors* last = nullptr;
  const auto is_new = [&last](const Normalization& normalization) {
    if (normalization.factors == nullptr) return false;
    return std::exchange(last, normalization.factors) != normalization.factors;
  };
  for (const Normalization& normalization : normalizations_) {
    if (is_new(normalization)) factors_.push_back(*normalization.factors);
  }
  last = nullptr;
  size_t next = 0;
  for (Normalization& normalization : normalizations_) {
    if (is_new(normalization)) ++next;
    if (normalization.factors != nullptr) normalization.factors = &factors_[next - 1];
  }
}

}  // namespace sluice
