// From indices of each dimension to stretches of elements.
#include "workload/local_part.h"

#include <utility>

#include "sluice/tensor.h"

namespace sluice::bench {

absl::StatusOr<LocalPart> LocalPart::Create(const Layout& layout, absl::Span<const int64_t> shape,
                                            int rank) {
  if (absl::Status status = ValidateLayout(layout, shape); !status.ok()) return status;
  LocalPart part;
  part.global_shape_.assign(shape.begin(), shape.end());
  part.strides_ = DenseStrides(shape);
  part.elements_ = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const OwnedIndices owned(layout, static_cast<int>(d), shape[d], rank);
    part.owned_.push_back(owned.Stretches());
    part.shape_.push_back(owned.count());
    part.elements_ *= owned.count();
  }
  return part;
}

std::optional<int64_t> LocalPart::first() const {
  if (elements_ == 0) return std::nullopt;
  int64_t flat = 0;
  for (size_t d = 0; d < owned_.size(); ++d) flat += owned_[d].front().begin * strides_[d];
  return flat;
}

std::optional<int64_t> LocalPart::last() const {
  if (elements_ == 0) return std::nullopt;
  int64_t flat = 0;
  for (size_t d = 0; d < owned_.size(); ++d) flat += (owned_[d].back().end - 1) * strides_[d];
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
  for (const OwnedIndices::Stretch& range : owned_[dim]) {
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
