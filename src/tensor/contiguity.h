// Tells whether part of a region is one consecutive piece of memory on one side, or rows at one
// distance.
#ifndef SLUICE_SRC_TENSOR_CONTIGUITY_H_
#define SLUICE_SRC_TENSOR_CONTIGUITY_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "tensor/stretch.h"

namespace sluice {

// One side of a region whose dimensions are given as runs.
struct RegionSide {
  absl::Span<const absl::Span<const Stretch>> runs;  // per dimension, in element order, not empty
  int64_t Stretch::*first = &Stretch::src;           // which side
  absl::Span<const int64_t> strides;                 // per dimension, bytes between positions
  int64_t element_bytes = 1;
};

// The byte offset of element `begin` from position (0, 0, ...), if the elements [begin, end),
// numbered row-major, are consecutive in memory. It is 0 for an empty range, and -1 otherwise.
int64_t ContiguousOffset(const RegionSide& side, int64_t begin, int64_t end);

// `count` pieces of `row_bytes` consecutive bytes, `stride_bytes` apart, the first at `offset`.
// Rows of a side that repeats or overlaps itself do so too: `stride_bytes` may be 0, or below
// row_bytes.
struct Rows {
  int64_t offset = 0;
  int64_t count = 0;
  int64_t row_bytes = 0;
  int64_t stride_bytes = 0;

  friend bool operator==(const Rows&, const Rows&) = default;
};

// The elements [begin, end), at least one, as rows: one row if they are consecutive. Nothing if
// they are no such rows, or if a dimension of the region has several runs, as rows are then seldom.
std::optional<Rows> RowsOf(const RegionSide& side, int64_t begin, int64_t end);

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_CONTIGUITY_H_
