// Cuts a copy into grids of equal pieces: the walk over dimensions, runs and partial rows.
//
// Dimensions are first made as few and as long as they can be (axes), then walked row-major. The
// loops that touch bytes are in copy_rows.cc, and in cast_grid.cc where elements are cast.
#include "device/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "device/cast_grid.h"
#include "device/cast_rows.h"
#include "device/copy_rows.h"
#include "sluice/tensor.h"
#include "tensor/cast.h"
#include "tensor/check.h"
#include "tensor/run.h"

namespace sluice {
namespace {

// Rows that are copied through all runs of the last axis before the next rows, so that what one
// run leaves of a cache line is still there for the next run.
constexpr int64_t kRowsPerPass = 32;

// One or several dimensions that are walked as one.
struct Axis {
  absl::Span<const Run> runs;  // none: one run from position 0, whose start is in the addresses
  int64_t scale = 1;           // positions per position of `runs`
  int64_t extent = 1;          // positions
  int64_t inner_elements = 1;  // elements under one position
  int64_t src_stride = 0;      // bytes between positions
  int64_t dst_stride = 0;
};

int64_t TotalLength(absl::Span<const Run> runs) {
  int64_t length = 0;
  for (const Run& run : runs) length += run.length;
  return length;
}

// True if one position of `outer` ends where the next begins, all of `inner` between them.
bool Joins(const Axis& outer, const Axis& inner) {
  return inner.runs.empty() && outer.src_stride == inner.extent * inner.src_stride &&
         outer.dst_stride == inner.extent * inner.dst_stride;
}

class Walk {
 public:
  // `cast` is null where the types are equal; it must outlive the walk.
  Walk(const StridedCopy& copy, const RowCast* cast);

  // Elements [begin, end) of the whole region.
  void CopyRange(int64_t begin, int64_t end) const { CopyPart(0, src_, dst_, begin, end); }

 private:
  void AddDimension(absl::Span<const Run> runs, int64_t src_stride, int64_t dst_stride);
  void TakePiece();

  // Elements [begin, end) of what lies under axis `level`.
  void CopyPart(size_t level, const std::byte* src, std::byte* dst, int64_t begin,
                int64_t end) const;
  // All that lies under one position of the axis above `level`, of which only [begin, end).
  void CopyPosition(size_t level, const std::byte* src, std::byte* dst, int64_t position,
                    int64_t begin, int64_t end) const;
  // All elements under positions [begin, end) of axis `level`.
  void CopyWhole(size_t level, const std::byte* src, std::byte* dst, int64_t begin,
                 int64_t end) const;
  void CopyLastTwo(const std::byte* src, std::byte* dst, const CopyAxis& rows) const;

  // What touches bytes: some elements of a piece, pieces along an axis, a grid of pieces.
  void MovePiece(const std::byte* src, std::byte* dst, int64_t elements) const;
  void MoveRows(const std::byte* src, std::byte* dst, const CopyAxis& axis) const;
  void MoveGrid(const std::byte* src, std::byte* dst, const CopyAxis& rows,
                const CopyAxis& columns) const;

  // Calls f(src, dst, positions) for each run of `axis`, cut to positions [begin, end).
  template <typename F>
  static void ForEachStretch(const Axis& axis, const std::byte* src, std::byte* dst, int64_t begin,
                             int64_t end, F f);

  const std::byte* src_;
  std::byte* dst_;
  const RowCast* cast_;
  int64_t src_bytes_;  // of one element
  int64_t dst_bytes_;
  int64_t piece_elements_ = 1;  // consecutive on both sides, under the last axis
  size_t axis_count_ = 0;
  std::array<Axis, kMaxTensorDims> axes_;
};

Walk::Walk(const StridedCopy& copy, const RowCast* cast)
    : src_(copy.src),
      dst_(copy.dst),
      cast_(cast),
      src_bytes_(DTypeBytes(copy.src_dtype)),
      dst_bytes_(DTypeBytes(copy.dst_dtype)) {
  for (size_t d = 0; d < static_cast<size_t>(copy.dims); ++d) {
    AddDimension(copy.runs[d], copy.src_strides[d], copy.dst_strides[d]);
  }
  TakePiece();
  int64_t elements = piece_elements_;
  for (size_t level = axis_count_; level-- > 0;) {
    Axis& axis = axes_[level];
    axis.inner_elements = elements;
    elements *= axis.extent;
  }
  SLUICE_CHECK(copy.end <= elements, "strided copy: range ends outside the region");
}

void Walk::AddDimension(absl::Span<const Run> runs, int64_t src_stride, int64_t dst_stride) {
  Axis axis;
  axis.extent = TotalLength(runs);
  axis.src_stride = src_stride;
  axis.dst_stride = dst_stride;
  if (runs.size() == 1) {
    src_ += runs[0].src * src_stride;
    dst_ += runs[0].dst * dst_stride;
    if (axis.extent == 1) return;
  } else {
    axis.runs = runs;
  }
  if (axis_count_ > 0) {
    Axis& outer = axes_[axis_count_ - 1];
    if (Joins(outer, axis)) {
      outer.scale *= axis.extent;
      outer.extent *= axis.extent;
      outer.src_stride = src_stride;
      outer.dst_stride = dst_stride;
      return;
    }
  }
  axes_[axis_count_++] = axis;
}

// Makes a last axis without gaps on either side into the piece that is copied at once.
void Walk::TakePiece() {
  if (axis_count_ == 0) return;
  const Axis& last = axes_[axis_count_ - 1];
  if (!last.runs.empty() || last.src_stride != src_bytes_ || last.dst_stride != dst_bytes_) {
    return;
  }
  piece_elements_ = last.extent;
  --axis_count_;
}

template <typename F>
void Walk::ForEachStretch(const Axis& axis, const std::byte* src, std::byte* dst, int64_t begin,
                          int64_t end, F f) {
  if (axis.runs.empty()) {
    f(src + begin * axis.src_stride, dst + begin * axis.dst_stride, end - begin);
    return;
  }
  int64_t first = 0;  // position at which the run begins
  for (const Run& run : axis.runs) {
    if (first >= end) return;
    const int64_t length = run.length * axis.scale;
    const int64_t from = std::max(begin - first, int64_t{0});
    const int64_t to = std::min(end - first, length);
    if (from < to) {
      f(src + (run.src * axis.scale + from) * axis.src_stride,
        dst + (run.dst * axis.scale + from) * axis.dst_stride, to - from);
    }
    first += length;
  }
}

void Walk::CopyPart(size_t level, const std::byte* src, std::byte* dst, int64_t begin,
                    int64_t end) const {
  if (level == axis_count_) {
    return MovePiece(src + begin * src_bytes_, dst + begin * dst_bytes_, end - begin);
  }
  const int64_t inner = axes_[level].inner_elements;
  int64_t first = begin / inner;
  const int64_t last = end / inner;
  const int64_t head = begin % inner;
  const int64_t tail = end % inner;
  if (first == last) return CopyPosition(level, src, dst, first, head, tail);
  if (head > 0) CopyPosition(level, src, dst, first++, head, inner);
  if (first < last) CopyWhole(level, src, dst, first, last);
  if (tail > 0) CopyPosition(level, src, dst, last, 0, tail);
}

void Walk::CopyPosition(size_t level, const std::byte* src, std::byte* dst, int64_t position,
                        int64_t begin, int64_t end) const {
  ForEachStretch(axes_[level], src, dst, position, position + 1,
                 [&](const std::byte* at_src, std::byte* at_dst, int64_t) {
                   CopyPart(level + 1, at_src, at_dst, begin, end);
                 });
}

void Walk::CopyWhole(size_t level, const std::byte* src, std::byte* dst, int64_t begin,
                     int64_t end) const {
  const Axis& axis = axes_[level];
  const size_t below = axis_count_ - level - 1;
  ForEachStretch(axis, src, dst, begin, end,
                 [&](const std::byte* at_src, std::byte* at_dst, int64_t count) {
                   const CopyAxis rows = {count, axis.src_stride, axis.dst_stride};
                   if (below == 0) return MoveRows(at_src, at_dst, rows);
                   if (below == 1) return CopyLastTwo(at_src, at_dst, rows);
                   const int64_t inner_extent = axes_[level + 1].extent;
                   for (int64_t i = 0; i < count; ++i) {
                     CopyWhole(level + 1, at_src + i * axis.src_stride,
                               at_dst + i * axis.dst_stride, 0, inner_extent);
                   }
                 });
}

void Walk::CopyLastTwo(const std::byte* src, std::byte* dst, const CopyAxis& rows) const {
  const Axis& last = axes_[axis_count_ - 1];
  const int64_t rows_per_pass = last.runs.empty() ? rows.count : kRowsPerPass;
  for (int64_t i = 0; i < rows.count; i += rows_per_pass) {
    CopyAxis pass = rows;
    pass.count = std::min(rows_per_pass, rows.count - i);
    ForEachStretch(last, src + i * rows.src_stride, dst + i * rows.dst_stride, 0, last.extent,
                   [&](const std::byte* at_src, std::byte* at_dst, int64_t count) {
                     MoveGrid(at_src, at_dst, pass, {count, last.src_stride, last.dst_stride});
                   });
  }
}

void Walk::MovePiece(const std::byte* src, std::byte* dst, int64_t elements) const {
  if (cast_ != nullptr) return CastGrid(*cast_, src, dst, {}, {}, elements);
  std::memcpy(dst, src, static_cast<size_t>(elements * src_bytes_));
}

void Walk::MoveRows(const std::byte* src, std::byte* dst, const CopyAxis& axis) const {
  if (cast_ != nullptr) return CastGrid(*cast_, src, dst, {}, axis, piece_elements_);
  CopyRows(src, dst, axis, piece_elements_ * src_bytes_);
}

void Walk::MoveGrid(const std::byte* src, std::byte* dst, const CopyAxis& rows,
                    const CopyAxis& columns) const {
  if (cast_ != nullptr) return CastGrid(*cast_, src, dst, rows, columns, piece_elements_);
  CopyGrid(src, dst, rows, columns, piece_elements_ * src_bytes_);
}

}  // namespace

void CopyStrided(const StridedCopy& copy) {
  SLUICE_CHECK(copy.dims >= 1 && copy.dims <= kMaxTensorDims, "strided copy: bad dimension count");
  SLUICE_CHECK(copy.begin >= 0, "strided copy: range begins outside the region");
  SLUICE_CHECK(CastExists(copy.src_dtype, copy.dst_dtype), "strided copy: no such cast");
  if (copy.begin >= copy.end) return;
  if (copy.src_dtype == copy.dst_dtype) {
    return Walk(copy, nullptr).CopyRange(copy.begin, copy.end);
  }
  const RowCast cast(copy.src_dtype, copy.dst_dtype);
  Walk(copy, &cast).CopyRange(copy.begin, copy.end);
}

RegionSide SrcSide(const StridedCopy& copy) {
  const size_t dims = static_cast<size_t>(copy.dims);
  return {absl::MakeConstSpan(copy.runs.data(), dims), &Run::src,
          absl::MakeConstSpan(copy.src_strides.data(), dims), DTypeBytes(copy.src_dtype)};
}

RegionSide DstSide(const StridedCopy& copy) {
  const size_t dims = static_cast<size_t>(copy.dims);
  return {absl::MakeConstSpan(copy.runs.data(), dims), &Run::dst,
          absl::MakeConstSpan(copy.dst_strides.data(), dims), DTypeBytes(copy.dst_dtype)};
}

}  // namespace sluice
