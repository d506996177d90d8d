// One tensor dimension under a layout: who owns which indices.
//
// Pure interval arithmetic; costs follow the number of intervals touched, not the mesh.
#ifndef SLUICE_SRC_MESH_AXIS_H_
#define SLUICE_SRC_MESH_AXIS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tensor/interval.h"

namespace sluice {

// A mesh dimension that cuts the tensor dimension. First it cuts the dimension into `pieces` (1 for
// a plain Shard). Then it cuts each piece into `parts`, and part c of every piece goes to
// coordinate c.
struct Cut {
  int64_t parts = 1;
  int64_t pieces = 1;
};

// The indices of [0, size) that coordinates `coords` (one per cut) own, cuts applied in order.
IntervalList OwnedIndices(int64_t size, absl::Span<const Cut> cuts,
                          absl::Span<const int64_t> coords);

// The indices of a query that the ranks at one setting of the cuts' coordinates own.
struct PartOverlap {
  int64_t part = 0;  // coordinates row-major over the cuts
  IntervalList indices;
};

// Splits `query`, a subset of [0, size), by owner: ascending parts, only those that own some of it.
std::vector<PartOverlap> SplitByPart(int64_t size, absl::Span<const Cut> cuts,
                                     const IntervalList& query);

}  // namespace sluice

#endif  // SLUICE_SRC_MESH_AXIS_H_
