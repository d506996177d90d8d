// From index ranges to stretches of elements.
#include "workload/local_part.h"

#include <utility>

#include "sluice/tensor.h"

namespace sluice::bench {

absl::StatusOr<LocalPart> LocalPart::Create(const Layout& layout, absl::Span<const int64_t> shape,
                                            int rank) {
  auto ranges = OwnedRanges(layout, shape, rank);
  if (!ranges.ok()) return ranges.status();
  LocalPart part;
  part.ranges_ = *std::move(ranges);
  part.global_shape_.assign(shape.begin(), shape.end());
  part.strides_ = DenseStrides(shape);
  part.elements_ = 1;
  for (const std::vector<IndexRange>& owned : part.ranges_) {
    int64_t length = 0;
    for (const IndexRange& range : owned) length += range.end - range.begin;
    part.shape_.push_back(length);
    part.elements_ *= length;
  }
  return part;
}

std::optional<int64_t> LocalPart::first() const {
  if (elements_ == 0) return std::nullopt;
  int64_t flat = 0;
  for (size_t d = 0; d < ranges_.size(); ++d) flat += ranges_[d].front().begin * strides_[d];
  return flat;
}

std::optional<int64_t> LocalPart::last() const {
  if (elements_ == 0) return std::nullopt;
  int64_t flat = 0;
  for (size_t d = 0; d < ranges_.size(); ++d) flat += (ranges_[d].back().end - 1) * strides_[d];
  return flat;
}

size_t LocalPart::RunDimension() const {
  size_t dim = shape_.size() - 1;
  while (dim > 0 && shape_[dim] == global_shape_[dim]) --dim;
  return dim;
}

void LocalPart::ForEachRun(Visit visit) const {
  if (elements_ == 0) return;
  int64_t local = 0;
  Walk(0, RunDimension(), 0, &local, visit);
}

void LocalPart::Walk(size_t dim, size_t run_dim, int64_t global, int64_t* local,
                     Visit visit) const {
  const int64_t stride = strides_[dim];
  for (const IndexRange& range : ranges_[dim]) {
    if (dim == run_dim) {
      const int64_t count = (range.end - range.begin) * stride;
      if (count > 0) visit(*local, global + range.begin * stride, count);
      *local += count;
      continue;
    }
    for (int64_t i = range.begin; i < range.end; ++i) {
      Walk(dim + 1, run_dim, global + i * stride, local, visit);
    }
  }
}

}  // namespace sluice::bench
