// Joins dimensions of a copy that lie behind one another on both sides.
#include "device/copy_region.h"

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "device/strided_copy.h"
#include "sluice/tensor.h"
#include "tensor/cast.h"
#include "tensor/check.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

int64_t TotalLength(absl::Span<const Stretch> runs) {
  int64_t length = 0;
  for (const Stretch& run : runs) length += run.length;
  return length;
}

// True if one position of `outer` ends where the next begins, all of `inner` between them.
bool Joins(const RegionAxis& outer, const RegionAxis& inner) {
  return inner.runs.empty() && outer.src_stride == inner.extent * inner.src_stride &&
         outer.dst_stride == inner.extent * inner.dst_stride;
}

}  // namespace

CopyRegion::CopyRegion(const StridedCopy& copy) : src(copy.src), dst(copy.dst) {
  SLUICE_CHECK(copy.dims >= 1 && copy.dims <= kMaxTensorDims, "strided copy: bad dimension count");
  SLUICE_CHECK(copy.begin >= 0, "strided copy: range begins outside the region");
  SLUICE_CHECK(CastExists(copy.src_dtype, copy.dst_dtype), "strided copy: no such cast");
  for (size_t d = 0; d < static_cast<size_t>(copy.dims); ++d) {
    AddDimension(copy.runs[d], copy.src_strides[d], copy.dst_strides[d]);
  }
  TakePiece(DTypeBytes(copy.src_dtype), DTypeBytes(copy.dst_dtype));
  int64_t elements = piece_elements;
  for (size_t level = axis_count; level-- > 0;) {
    axes[level].inner_elements = elements;
    elements *= axes[level].extent;
  }
  SLUICE_CHECK(copy.end <= elements, "strided copy: range ends outside the region");
}

void CopyRegion::AddDimension(absl::Span<const Stretch> dimension, int64_t src_stride,
                              int64_t dst_stride) {
  RegionAxis axis;
  axis.extent = TotalLength(dimension);
  axis.src_stride = src_stride;
  axis.dst_stride = dst_stride;
  if (dimension.size() == 1) {
    src += dimension[0].src * src_stride;
    dst += dimension[0].dst * dst_stride;
    if (axis.extent == 1) return;
  } else {
    axis.runs = dimension;
  }
  if (axis_count > 0) {
    RegionAxis& outer = axes[axis_count - 1];
    if (Joins(outer, axis)) {
      outer.scale *= axis.extent;
      outer.extent *= axis.extent;
      outer.src_stride = src_stride;
      outer.dst_stride = dst_stride;
      return;
    }
  }
  axes[axis_count++] = axis;
}

// Makes a last axis without gaps on either side into the piece that is copied at once.
void CopyRegion::TakePiece(int64_t src_bytes, int64_t dst_bytes) {
  if (axis_count == 0) return;
  const RegionAxis& last = axes[axis_count - 1];
  if (!last.runs.empty() || last.src_stride != src_bytes || last.dst_stride != dst_bytes) return;
  piece_elements = last.extent;
  --axis_count;
}

}  // namespace sluice
