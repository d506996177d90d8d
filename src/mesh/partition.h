// A layout taken apart: which mesh dimensions cut which tensor dimension, and which replicate.
#ifndef SLUICE_SRC_MESH_PARTITION_H_
#define SLUICE_SRC_MESH_PARTITION_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mesh/axis.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

// One part number per tensor dimension.
using PartTuple = std::array<int64_t, kMaxTensorDims>;

// Ranks with equal part tuples hold the same data; the replica number tells them apart.
class Partition {
 public:
  // `layout` must be valid for tensors of `dims` dimensions.
  Partition(const Layout& layout, int dims);

  absl::Span<const Cut> cuts(int dim) const { return cuts_[static_cast<size_t>(dim)]; }
  int64_t replicas() const { return replicas_; }

  // Position in the mesh's rank list.
  int64_t PositionOf(const PartTuple& parts, int64_t replica) const;

  // The part tuple of a position, and its replica number.
  PartTuple PartsOf(int64_t position) const;
  int64_t ReplicaOf(int64_t position) const;

  // The indices of [0, size) that part `part` of tensor dimension `dim` owns.
  IntervalList Owned(int dim, int64_t part, int64_t size) const;

 private:
  struct Axis {
    int64_t size = 1;
    int64_t stride = 1;  // of the position
  };
  std::array<std::vector<Cut>, kMaxTensorDims> cuts_;
  std::array<std::vector<Axis>, kMaxTensorDims> axes_;  // parallel to cuts_
  std::vector<Axis> replica_axes_;
  int dims_;
  int64_t replicas_ = 1;
};

}  // namespace sluice

#endif  // SLUICE_SRC_MESH_PARTITION_H_
