// Reductions and casts of dense stretches, as plain loops: what Partial placements and differing
// dtypes ask for. Also which ranks hold what is to be reduced.
#ifndef SLUICE_BENCH_WORKLOAD_REDUCE_H_
#define SLUICE_BENCH_WORKLOAD_REDUCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice::bench {

// One Partial mesh dimension.
struct ReduceStep {
  ReduceOp op;
  int64_t ranks;

  friend bool operator==(const ReduceStep&, const ReduceStep&) = default;
};

// Carries out `steps`, the first one first, in the order of the ranks. Each stretch has `count`
// elements, and there are as many stretches as the product of the steps' ranks. The rank of the
// first step counts fastest. Every single operation is rounded to `dtype`; integers wrap, and avg
// truncates. The result is in stretches[0]; the others lose their content.
void ReduceInPlace(absl::Span<const ReduceStep> steps, DType dtype, int64_t count,
                   absl::Span<std::byte* const> stretches);

// Whether ConvertElements has this cast: between floating types, and from any type to itself.
bool CanConvert(DType src_dtype, DType dst_dtype);

// Writes `count` elements at `src` to `dst` as another dtype, rounded to nearest even.
void ConvertElements(DType src_dtype, const std::byte* src, int64_t count, DType dst_dtype,
                     std::byte* dst);

// Ranks of a source layout that own the same elements, the contributions among them (Partial), and
// the copies of each contribution (Replicate). A group is named by its base: the lowest mesh
// position of its ranks.
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

#endif  // SLUICE_BENCH_WORKLOAD_REDUCE_H_
