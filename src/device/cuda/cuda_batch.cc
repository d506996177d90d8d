// Copies what a batch refers to.
#include "device/cuda/cuda_batch.h"

#include <cstddef>

#include "absl/types/span.h"
#include "device/device.h"
#include "device/strided_copy.h"
#include "tensor/stretch.h"

namespace sluice {

void OwnedBatch::Assign(const CopyBatch& batch) {
  copies_.assign(batch.copies.begin(), batch.copies.end());
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
}

}  // namespace sluice
