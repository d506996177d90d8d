// From indices of each dimension to stretches of elements.
#include "workload/local_part.h"

#include <utility>

#include "sluice/status.h"
#include "sluice/tensor.h"

namespace sluice::bench {

int64_t ElementsOf(absl::Span<const int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements;
}

absl::Span<std::byte> BytesOf(const TensorView& view) {
  if (view.data == nullptr) return {};
  const int64_t bytes = ElementsOf(view.shape) * DTypeBytes(view.dtype);
  return {static_cast<std::byte*>(view.data) + view.byte_offset, static_cast<size_t>(bytes)};
}

absl::StatusOr<LocalPart> LocalPart::Create(const Layout& layout, absl::Span<const int64_t> shape,
                                            int rank) {
  SLUICE_RETURN_IF_ERROR(ValidateLayout(layout, shape));
  LocalPart part;
  part.global_shape_.assign(shape.begin(), shape.end());
  part.strides_ = DenseStrides(shape);
  part.has_boxes_ = !layout.boxes.empty();
  for (const Box& box : layout.boxes.Of(rank)) {
    Block block;
    for (size_t d = 0; d < shape.size(); ++d) {
      block.owned.push_back({{box.offset[d], box.offset[d] + box.shape[d]}});
    }
    block.shape = box.shape;
    part.Add(std::move(block));
  }
  if (part.has_boxes_) {
    part.shape_ = {part.elements_};
    return part;
  }
  Block block;
  for (size_t d = 0; d < shape.size(); ++d) {
    const OwnedIndices owned(layout, static_cast<int>(d), shape[d], rank);
    block.owned.push_back(owned.Stretches());
    block.shape.push_back(owned.count());
  }
  part.shape_ = block.shape;
  part.Add(std::move(block));
  return part;
}

void LocalPart::Add(Block block) {
  block.elements = ElementsOf(block.shape);
  elements_ += block.elements;
  blocks_.push_back(std::move(block));
}

TensorView LocalPart::View(std::byte* data, DType dtype) const {
  if (!has_boxes_) return DenseView(data, shape_, dtype);
  TensorView view;
  view.dtype = dtype;
  for (const Block& block : blocks_) {
    view.boxes.push_back(DenseView(data, block.shape, dtype));
    if (data != nullptr) data += block.elements * DTypeBytes(dtype);
  }
  return view;
}

std::optional<int64_t> LocalPart::first() const {
  if (elements_ == 0) return std::nullopt;
  int64_t flat = 0;
  for (size_t d = 0; d < strides_.size(); ++d) {
    flat += blocks_.front().owned[d].front().begin * strides_[d];
  }
  return flat;
}

std::optional<int64_t> LocalPart::last() const {
  if (elements_ == 0) return std::nullopt;
  int64_t flat = 0;
  for (size_t d = 0; d < strides_.size(); ++d) {
    flat += (blocks_.back().owned[d].back().end - 1) * strides_[d];
  }
  return flat;
}

size_t LocalPart::RunDimension(const Block& block) const {
  size_t dim = block.shape.size() - 1;
  while (dim > 0 && block.shape[dim] == global_shape_[dim]) --dim;
  return dim;
}

void LocalPart::ForEachRun(Visit visit) const {
  int64_t local = 0;
  for (const Block& block : blocks_) {
    if (block.elements > 0) Walk(block, 0, RunDimension(block), 0, &local, visit);
  }
}

void LocalPart::Walk(const Block& block, size_t dim, size_t run_dim, int64_t global, int64_t* local,
                     Visit visit) const {
  const int64_t stride = strides_[dim];
  for (const OwnedIndices::Stretch& range : block.owned[dim]) {
    if (dim == run_dim) {
      const int64_t count = (range.end - range.begin) * stride;
      if (count > 0) visit(*local, global + range.begin * stride, count);
      *local += count;
      continue;
    }
    for (int64_t i = range.begin; i < range.end; ++i) {
      Walk(block, dim + 1, run_dim, global + i * stride, local, visit);
    }
  }
}

}  // namespace sluice::bench
