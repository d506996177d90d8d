// Whether part of a region is one consecutive piece of memory on one side.
#ifndef SLUICE_SRC_TENSOR_CONTIGUITY_H_
#define SLUICE_SRC_TENSOR_CONTIGUITY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "tensor/run.h"

namespace sluice {

// One side of a region whose dimensions are given as runs.
struct RegionSide {
  absl::Span<const absl::Span<const Run>> runs;  // per dimension, in element order, not empty
  int64_t Run::*first = &Run::src;               // which side
  absl::Span<const int64_t> strides;             // per dimension, bytes between positions
  int64_t element_bytes = 1;
};

// If the elements [begin, end), numbered row-major, are consecutive in memory, the byte offset of
// element `begin` from position (0, 0, ...), and 0 for an empty range; -1 otherwise.
int64_t ContiguousOffset(const RegionSide& side, int64_t begin, int64_t end);

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_CONTIGUITY_H_
