// Cuts a copy into grids of equal pieces: the walk over dimensions, runs and partial rows.
//
// Dimensions are made as few and as long as they can be (copy_region.h), then walked row-major. The
// loops that touch bytes are in copy_rows.cc, and in cast_grid.cc where elements are cast.
#include "device/strided_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "device/cast_rows.h"
#include "device/copy_region.h"
#include "device/copy_rows.h"
#include "device/float_mode.h"
#include "device/stores.h"
#include "device/stream_rows.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

// Rows that are copied through all runs of the last axis before the next rows. The rest of a cache
// line after one run is then still there for the next run.
constexpr int64_t kRowsPerPass = 32;

class Walk {
 public:
  // `cast` is null where the types are equal; it must outlive the walk.
  Walk(const StridedCopy& copy, const RowCast* cast, WriteHint stores);

  // Elements [begin, end) of the whole region.
  void CopyRange(int64_t begin, int64_t end) const {
    CopyPart(0, region_.src, region_.dst, begin, end);
  }

 private:
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

  void MovePiece(const std::byte* src, std::byte* dst, int64_t elements) const;
  void MoveRows(const std::byte* src, std::byte* dst, const CopyAxis& axis) const;
  void MoveGrid(const std::byte* src, std::byte* dst, const CopyAxis& rows,
                const CopyAxis& columns) const;

  // Calls f(src, dst, positions) for each run of `axis`, cut to positions [begin, end).
  template <typename F>
  static void ForEachStretch(const RegionAxis& axis, const std::byte* src, std::byte* dst,
                             int64_t begin, int64_t end, F f);

  const CopyRegion region_;
  const RowCast* cast_;
  WriteHint stores_;
  int64_t src_bytes_;  // of one element
  int64_t dst_bytes_;
};

Walk::Walk(const StridedCopy& copy, const RowCast* cast, WriteHint stores)
    : region_(copy),
      cast_(cast),
      stores_(stores),
      src_bytes_(DTypeBytes(copy.src_dtype)),
      dst_bytes_(DTypeBytes(copy.dst_dtype)) {}

template <typename F>
void Walk::ForEachStretch(const RegionAxis& axis, const std::byte* src, std::byte* dst,
                          int64_t begin, int64_t end, F f) {
  if (axis.runs.empty()) {
    f(src + begin * axis.src_stride, dst + begin * axis.dst_stride, end - begin);
    return;
  }
  int64_t first = 0;  // position at which the run begins
  for (const Stretch& run : axis.runs) {
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
  if (level == region_.axis_count) {
    return MovePiece(src + begin * src_bytes_, dst + begin * dst_bytes_, end - begin);
  }
  const int64_t inner = region_.axes[level].inner_elements;
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
  ForEachStretch(region_.axes[level], src, dst, position, position + 1,
                 [&](const std::byte* at_src, std::byte* at_dst, int64_t) {
                   CopyPart(level + 1, at_src, at_dst, begin, end);
                 });
}

void Walk::CopyWhole(size_t level, const std::byte* src, std::byte* dst, int64_t begin,
                     int64_t end) const {
  const RegionAxis& axis = region_.axes[level];
  const size_t below = region_.axis_count - level - 1;
  ForEachStretch(axis, src, dst, begin, end,
                 [&](const std::byte* at_src, std::byte* at_dst, int64_t count) {
                   const CopyAxis rows = {count, axis.src_stride, axis.dst_stride};
                   if (below == 0) return MoveRows(at_src, at_dst, rows);
                   if (below == 1) return CopyLastTwo(at_src, at_dst, rows);
                   const int64_t inner_extent = region_.axes[level + 1].extent;
                   for (int64_t i = 0; i < count; ++i) {
                     CopyWhole(level + 1, at_src + i * axis.src_stride,
                               at_dst + i * axis.dst_stride, 0, inner_extent);
                   }
                 });
}

void Walk::CopyLastTwo(const std::byte* src, std::byte* dst, const CopyAxis& rows) const {
  const RegionAxis& last = region_.axes[region_.axis_count - 1];
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
  if (cast_ != nullptr) return CastGrid(*cast_, src, dst, {}, {}, elements, stores_);
  CopyRows(src, dst, {}, elements * src_bytes_, stores_);
}

void Walk::MoveRows(const std::byte* src, std::byte* dst, const CopyAxis& axis) const {
  const int64_t elements = region_.piece_elements;
  if (cast_ != nullptr) return CastGrid(*cast_, src, dst, {}, axis, elements, stores_);
  CopyRows(src, dst, axis, elements * src_bytes_, stores_);
}

void Walk::MoveGrid(const std::byte* src, std::byte* dst, const CopyAxis& rows,
                    const CopyAxis& columns) const {
  const int64_t elements = region_.piece_elements;
  if (cast_ != nullptr) return CastGrid(*cast_, src, dst, rows, columns, elements, stores_);
  CopyGrid(src, dst, rows, columns, elements * src_bytes_, stores_);
}

// One dimension of one run without gaps, as most small tensors are. To find this out as a
// CopyRegion costs more than copying a few hundred bytes.
bool IsOneStretch(const StridedCopy& copy) {
  const int64_t element_bytes = DTypeBytes(copy.src_dtype);
  return copy.dims == 1 && copy.runs[0].size() == 1 && copy.src_dtype == copy.dst_dtype &&
         copy.src_strides[0] == element_bytes && copy.dst_strides[0] == element_bytes &&
         copy.begin >= 0 && copy.end <= copy.runs[0][0].length;
}

void MoveStretch(const StridedCopy& copy, WriteHint stores) {
  const Stretch& run = copy.runs[0][0];
  const int64_t element_bytes = DTypeBytes(copy.src_dtype);
  CopyRows(copy.src + (run.src + copy.begin) * element_bytes,
           copy.dst + (run.dst + copy.begin) * element_bytes, {},
           (copy.end - copy.begin) * element_bytes, stores);
}

}  // namespace

void CopyStrided(const StridedCopy& copy) {
  if (copy.begin >= copy.end) return;
  const WriteHint stores =
      ResolveStores(copy.stores, (copy.end - copy.begin) * DTypeBytes(copy.dst_dtype));
  if (IsOneStretch(copy)) {
    MoveStretch(copy, stores);
  } else if (copy.src_dtype == copy.dst_dtype) {
    Walk(copy, nullptr, stores).CopyRange(copy.begin, copy.end);
  } else {
    const PromisedFloatMode mode;
    const RowCast cast(copy.src_dtype, copy.dst_dtype);
    Walk(copy, &cast, stores).CopyRange(copy.begin, copy.end);
  }
  if (stores == WriteHint::kStreaming) StreamFence();
}

RegionSide SrcSide(const StridedCopy& copy) {
  const size_t dims = static_cast<size_t>(copy.dims);
  return {absl::MakeConstSpan(copy.runs.data(), dims), &Stretch::src,
          absl::MakeConstSpan(copy.src_strides.data(), dims), DTypeBytes(copy.src_dtype)};
}

RegionSide DstSide(const StridedCopy& copy) {
  const size_t dims = static_cast<size_t>(copy.dims);
  return {absl::MakeConstSpan(copy.runs.data(), dims), &Stretch::dst,
          absl::MakeConstSpan(copy.dst_strides.data(), dims), DTypeBytes(copy.dst_dtype)};
}

}  // namespace sluice
