// A layout taken apart: which mesh dimensions cut which tensor dimension, which replicate, and
// which hold contributions to be reduced.
#ifndef SLUICE_SRC_MESH_PARTITION_H_
#define SLUICE_SRC_MESH_PARTITION_H_

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mesh/axis.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

// One part number per tensor dimension.
using PartTuple = std::array<int64_t, kMaxTensorDims>;

// Contributions that are reduced one after the other. They are along a Partial mesh dimension of
// more than one rank, or along several that follow one another and have the same op. The op of
// several is sum, max or min. The result does not depend on which dimension is first, but for the
// rounding of sums.
struct Level {
  int64_t size = 1;
  ReduceOp op = ReduceOp::kSum;

  friend auto operator<=>(const Level&, const Level&) = default;
};

// Ranks with equal part tuples hold the same elements. The contribution number tells apart those
// whose values have to be reduced (there is one without Partial dimensions). The replica number
// tells apart those that hold the same values.
class Partition {
 public:
  // `layout` must be valid for tensors of `dims` dimensions.
  Partition(const Layout& layout, int dims);

  absl::Span<const Cut> cuts(int dim) const { return cuts_[static_cast<size_t>(dim)]; }
  int64_t replicas() const { return replicas_; }

  // The Partial dimensions, left to right: the order in which they are reduced. Contributions are
  // numbered so that those of the first level are consecutive, and within a level by mesh position.
  absl::Span<const Level> levels() const { return levels_; }
  int64_t contributions() const { return contributions_; }

  // Position in the mesh's rank list.
  int64_t PositionOf(const PartTuple& parts, int64_t replica, int64_t contribution = 0) const;

  // The part tuple of a position, its replica and its contribution number.
  PartTuple PartsOf(int64_t position) const;
  int64_t ReplicaOf(int64_t position) const;
  int64_t ContributionOf(int64_t position) const;

  // The indices of [0, size) that part `part` of tensor dimension `dim` owns.
  IntervalList Owned(int dim, int64_t part, int64_t size) const;
  // Splits `query`, a subset of [0, size), by the part of tensor dimension `dim` that owns it.
  std::vector<PartOverlap> Split(int dim, int64_t size, const IntervalList& query) const;

 private:
  struct Axis {
    int64_t size = 1;
    int64_t stride = 1;  // of the position
  };
  void AddContributions(const Axis& axis, ReduceOp op);
  static int64_t NumberAlong(const std::vector<Axis>& axes, int64_t position);

  std::array<std::vector<Cut>, kMaxTensorDims> cuts_;
  std::array<std::vector<Axis>, kMaxTensorDims> axes_;  // parallel to cuts_
  std::vector<Axis> replica_axes_;
  std::vector<Axis> contribution_axes_;  // the last level's first; a level's as in the mesh
  ptrdiff_t last_level_axes_ = 0;
  std::vector<Level> levels_;
  std::vector<int64_t> whole_;  // of the layout
  std::vector<int64_t> offset_;
  int dims_;
  int64_t replicas_ = 1;
  int64_t contributions_ = 1;
};

}  // namespace sluice

#endif  // SLUICE_SRC_MESH_PARTITION_H_
