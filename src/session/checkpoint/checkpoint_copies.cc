// Bases and strides.
#include "session/checkpoint/checkpoint_copies.h"

namespace sluice {
namespace {

std::array<int64_t, kMaxTensorDims> DenseBytes(const std::array<int64_t, kMaxTensorDims>& sizes,
                                               int dims, DType dtype) {
  std::array<int64_t, kMaxTensorDims> strides{};
  int64_t stride = DTypeBytes(dtype);
  for (size_t d = static_cast<size_t>(dims); d-- > 0;) {
    strides[d] = stride;
    stride *= sizes[d];
  }
  return strides;
}

StridedCopy CopyOf(const CheckpointPart& part, const CheckpointSide& src,
                   const CheckpointSide& dst) {
  StridedCopy copy;
  copy.dims = part.dims;
  copy.src = src.base;
  copy.src_strides = src.strides;
  copy.src_dtype = src.dtype;
  copy.dst = dst.base;
  copy.dst_strides = dst.strides;
  copy.dst_dtype = dst.dtype;
  copy.end = part.elements;
  copy.src_kind = src.kind;
  copy.dst_kind = dst.kind;
  return copy;
}

}  // namespace

CheckpointSide BoxSide(const CheckpointPart& part, std::byte* box, DType dtype, DeviceKind kind) {
  return {box, DenseBytes(part.box_size, part.dims, dtype), dtype, kind};
}

CheckpointSide PackedSide(const CheckpointPart& part, std::byte* packed, DType dtype,
                          DeviceKind kind) {
  return {packed, DenseBytes(part.extent, part.dims, dtype), dtype, kind};
}

CheckpointSide LocalSide(const CheckpointPart& part, const BoundView& view, DType dtype) {
  CheckpointSide side = {view.base, {}, dtype, view.kind};
  const size_t first = static_cast<size_t>(part.first_dim);
  for (size_t d = 0; d < first + static_cast<size_t>(part.dims); ++d) {
    side.base += part.local_begin[d] * view.stride_bytes[d];
    if (d >= first) side.strides[d - first] = view.stride_bytes[d];
  }
  return side;
}

StridedCopy BoxCopy(const CheckpointPart& part, const CheckpointSide& src,
                    const CheckpointSide& dst) {
  StridedCopy copy = CopyOf(part, src, dst);
  copy.runs = part.runs;
  return copy;
}

StridedCopy PartCopy(const CheckpointPart& part, const CheckpointSide& src,
                     const CheckpointSide& dst, WholeRuns* runs) {
  StridedCopy copy = CopyOf(part, src, dst);
  for (size_t d = 0; d < static_cast<size_t>(part.dims); ++d) {
    (*runs)[d] = {0, 0, part.extent[d]};
    copy.runs[d] = absl::MakeConstSpan(&(*runs)[d], 1);
  }
  return copy;
}

std::optional<Rows> RowsInBox(const CheckpointPart& part, CheckpointFlow flow, DType dtype) {
  const size_t dims = static_cast<size_t>(part.dims);
  const CheckpointSide box = BoxSide(part, nullptr, dtype);
  const RegionSide side = {absl::MakeConstSpan(part.runs.data(), dims),
                           flow == CheckpointFlow::kLoad ? &Stretch::src : &Stretch::dst,
                           absl::MakeConstSpan(box.strides.data(), dims), DTypeBytes(dtype)};
  const std::optional<Rows> rows = RowsOf(side, 0, part.elements);
  if (!rows || rows->count == 1) return rows;
  if (rows->row_bytes < CheckpointPlan::kRowBytesMin) return std::nullopt;
  return rows;
}

}  // namespace sluice
