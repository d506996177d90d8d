// Who holds what in a source layout: ranks that own the same elements, the contributions among them
// (Partial), and the copies of each contribution (Replicate).
//
// A group is named by its base: the lowest mesh position of its ranks.
#ifndef SLUICE_BENCH_WORKLOAD_SOURCE_GROUPS_H_
#define SLUICE_BENCH_WORKLOAD_SOURCE_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/layout.h"
#include "workload/reduce.h"

namespace sluice::bench {

class SourceGroups {
 public:
  explicit SourceGroups(const Layout& layout);  // a valid one

  // The Partial mesh dimensions, left to right; neighbours with the same op, sum, max or min, are
  // one step, whose ranks count as in the mesh.
  const std::vector<ReduceStep>& steps() const { return steps_; }
  // Contributions to each element: the product of the steps' ranks. The rank of the first step
  // counts fastest.
  size_t contributions() const { return partial_offsets_.size(); }
  // The groups' bases, ascending.
  const std::vector<int64_t>& bases() const { return bases_; }

  // The ranks that hold contribution `index` of the group at `base`, in mesh order.
  std::vector<int> Holders(int64_t base, size_t index) const;
  // The lowest of those.
  int LowestHolder(int64_t base, size_t index) const;

  int64_t BaseOf(int64_t position) const;
  size_t ContributionOf(int64_t position) const;

 private:
  // All sums of one multiple of each dimension's stride; the first dimension counts fastest or
  // slowest.
  struct Dimension {
    int64_t size;
    int64_t stride;
  };
  void AddPartial(const Dimension& dimension, ReduceOp op);
  static std::vector<int64_t> Offsets(const std::vector<Dimension>& dimensions, bool first_fastest);
  static int64_t PartAlong(const Dimension& dimension, int64_t position) {
    return position / dimension.stride % dimension.size;
  }

  std::vector<int> ranks_;
  std::vector<ReduceStep> steps_;
  std::vector<Dimension> partial_;  // the one that counts fastest first
  ptrdiff_t last_step_ = 0;         // the first of the last step's
  std::vector<Dimension> replicate_;
  std::vector<int64_t> partial_offsets_;
  std::vector<int64_t> replicate_offsets_;  // ascending
  std::vector<int64_t> bases_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_SOURCE_GROUPS_H_
