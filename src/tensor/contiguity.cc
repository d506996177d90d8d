// Finds out whether a range of a region is one consecutive piece of memory on one side.
//
// Exact, and without walking elements. Consecutive elements differ by a step at one dimension, and
// all dimensions further in wrap round. So it is enough to look at each kind of step that the range
// takes.
#include "tensor/contiguity.h"

#include "tensor/check.h"

namespace sluice {
namespace {

// The steps that a range takes along one dimension: to the positions p of which p + k * extent is
// in [low, high] for some k.
struct Steps {
  int64_t low;
  int64_t high;
  int64_t extent;

  // True if some position in [from, to] is stepped to.
  bool Meet(int64_t from, int64_t to) const {
    if (low > high || from > to) return false;
    if (high - low + 1 >= extent) return true;
    const int64_t begin = low % extent;
    const int64_t end = begin + (high - low);
    return (begin <= to && from <= end) || from + extent <= end;
  }
};

int64_t TotalLength(absl::Span<const Stretch> runs) {
  int64_t length = 0;
  for (const Stretch& run : runs) length += run.length;
  return length;
}

// Locates element position `position` of the run list on a side.
int64_t Locate(absl::Span<const Stretch> runs, int64_t Stretch::*first, int64_t position) {
  for (const Stretch& run : runs) {
    if (position < run.length) return run.*first + position;
    position -= run.length;
  }
  return 0;
}

// True if all steps of one dimension lead to the next element in memory. `wrapped_bytes` is how far
// the dimensions further in fall back at a step.
bool StepsAreDense(absl::Span<const Stretch> runs, int64_t Stretch::*first, int64_t stride,
                   int64_t wrapped_bytes, int64_t element_bytes, const Steps& steps) {
  int64_t position = 0;
  int64_t previous = 0;  // last position on this side of the run before
  for (const Stretch& run : runs) {
    if (position > 0 && steps.Meet(position, position) &&
        (run.*first - previous) * stride - wrapped_bytes != element_bytes) {
      return false;
    }
    if (steps.Meet(position + 1, position + run.length - 1) &&
        stride - wrapped_bytes != element_bytes) {
      return false;
    }
    position += run.length;
    previous = run.*first + run.length - 1;
  }
  return true;
}

}  // namespace

int64_t ContiguousOffset(const RegionSide& side, int64_t begin, int64_t end) {
  if (begin >= end) return 0;
  int64_t offset = 0;
  int64_t inner_elements = 1;
  int64_t wrapped_bytes = 0;
  for (size_t d = side.runs.size(); d-- > 0;) {
    const absl::Span<const Stretch> runs = side.runs[d];
    const int64_t stride = side.strides[d];
    const int64_t extent = TotalLength(runs);
    SLUICE_CHECK(extent > 0, "a region has a dimension without runs");
    const Steps steps = {begin / inner_elements + 1, (end - 1) / inner_elements, extent};
    if (!StepsAreDense(runs, side.first, stride, wrapped_bytes, side.element_bytes, steps)) {
      return -1;
    }
    offset += Locate(runs, side.first, begin / inner_elements % extent) * stride;
    wrapped_bytes += (Locate(runs, side.first, extent - 1) - Locate(runs, side.first, 0)) * stride;
    inner_elements *= extent;
  }
  return offset;
}

std::optional<Rows> RowsOf(const RegionSide& side, int64_t begin, int64_t end) {
  Rows rows;
  rows.offset = ContiguousOffset(side, begin, end);
  if (rows.offset >= 0) {
    rows.count = 1;
    rows.row_bytes = (end - begin) * side.element_bytes;
    return rows;
  }
  rows.offset = 0;
  int64_t row_elements = 1;
  // The stride that would go on with the rows found so far; none while still within a row. It may
  // be 0: rows of a dimension of stride 0 are one and the same.
  std::optional<int64_t> next_stride;
  for (size_t d = side.runs.size(); d-- > 0;) {
    if (side.runs[d].size() != 1) return std::nullopt;
    const Stretch& run = side.runs[d][0];
    const int64_t stride = side.strides[d];
    rows.offset += run.*side.first * stride;
    if (run.length == 1) continue;
    if (!next_stride && stride == row_elements * side.element_bytes) {
      row_elements *= run.length;
      continue;
    }
    if (!next_stride) rows.stride_bytes = stride;
    if (next_stride && stride != *next_stride) return std::nullopt;
    next_stride = stride * run.length;
  }
  if (begin % row_elements != 0 || end % row_elements != 0) return std::nullopt;
  rows.row_bytes = row_elements * side.element_bytes;
  rows.offset += begin / row_elements * rows.stride_bytes;
  rows.count = (end - begin) / row_elements;
  return rows;
}

}  // namespace sluice
