// How a tensor lies over a mesh of ranks, with the meaning of PyTorch DTensor.
//
// For each tensor dimension d a rank owns an ascending list of global indices L_d, at first
// 0..S_d-1. Mesh dimensions are visited one after the other; each one's placement cuts at most one
// L_d. docs/layouts.md gives the rule and examples.
#ifndef SLUICE_LAYOUT_H_
#define SLUICE_LAYOUT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice {

// An N-D grid over a list of distinct ranks, row-major. Immutable; copies share their content.
class Mesh {
 public:
  // An empty mesh: no dimensions, no ranks. Only a placeholder until Create's result is assigned.
  Mesh();

  // `sizes`: ranks per mesh dimension, each at least 1. `ranks`: any order, as many as the product
  // of `sizes`, distinct, not negative. InvalidArgument says which of these does not hold.
  static absl::StatusOr<Mesh> Create(std::vector<int64_t> sizes, std::vector<int> ranks);

  absl::Span<const int64_t> sizes() const { return rep_->sizes; }
  absl::Span<const int> ranks() const { return rep_->ranks; }

  // Where `rank` stands in ranks(), or nothing if it is not in the mesh. O(log ranks).
  std::optional<int64_t> PositionOf(int rank) const;

  // The largest rank; -1 for the empty mesh.
  int max_rank() const;

  // True if both have the same content.
  friend bool operator==(const Mesh& a, const Mesh& b);

  // A value that is equal for copies of one mesh: a cheap key for caches within one process.
  const void* identity() const { return rep_.get(); }

 private:
  struct Rep {
    std::vector<int64_t> sizes;
    std::vector<int> ranks;
    std::vector<std::pair<int, int64_t>> position_by_rank;  // sorted by rank
  };
  explicit Mesh(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}
  std::shared_ptr<const Rep> rep_;
};

enum class ReduceOp : uint8_t { kSum, kAvg, kMax, kMin, kProduct };

// What one mesh dimension does to a tensor.
struct Placement {
  enum class Kind : uint8_t { kReplicate, kShard, kStridedShard, kPartial };

  Kind kind = Kind::kReplicate;
  int dim = 0;                   // kShard, kStridedShard: the tensor dimension that is cut
  int64_t split_factor = 1;      // kStridedShard: pieces that are each cut
  ReduceOp op = ReduceOp::kSum;  // kPartial

  static Placement Replicate() { return {}; }
  static Placement Shard(int dim) { return {Kind::kShard, dim, 1, ReduceOp::kSum}; }
  static Placement StridedShard(int dim, int64_t split_factor) {
    return {Kind::kStridedShard, dim, split_factor, ReduceOp::kSum};
  }
  static Placement Partial(ReduceOp op) { return {Kind::kPartial, 0, 1, op}; }

  friend bool operator==(const Placement&, const Placement&) = default;
};

// Reads "R", "S(0)", "SS(0,2)", "P(sum)"; blanks around the parts are ignored. InvalidArgument
// quotes the text.
absl::StatusOr<Placement> ParsePlacement(absl::string_view text);

// Reads a comma-separated list of placements: "R,S(0),SS(0,2)".
absl::StatusOr<std::vector<Placement>> ParsePlacements(absl::string_view text);

// The text that ParsePlacement reads.
std::string PlacementName(const Placement& placement);

// A mesh and one placement for each of its dimensions.
struct Layout {
  Mesh mesh = {};
  std::vector<Placement> placements = {};
  // The mesh dimensions in the order in which they are visited: a permutation of 0 .. dimensions-1.
  // Empty: left to right. FSDP over tensor parallelism on a (dp, tp) mesh is S(0), S(0) in the
  // order {1, 0}: cut by tp first. Coordinates, which ranks are replicas, and the order in which
  // Partial dimensions are reduced do not depend on it.
  std::vector<int> order = {};
};

// True if mesh dimensions are visited left to right, whether the layout says so or nothing.
bool IsLeftToRight(const Layout& layout);

// OK if `layout` can hold a tensor of `shape`. The shape has 1 to kMaxTensorDims dimensions, no
// negative size, and a number of elements that an int64_t holds. The layout has one placement per
// mesh dimension, shards dimensions that exist, and visits each mesh dimension once.
absl::Status ValidateLayout(const Layout& layout, absl::Span<const int64_t> shape);

// Shape of the dense local tensor of `rank`: how many indices the rank owns along each dimension.
// All are 0 if the rank is not in the mesh. Errors as ValidateLayout.
absl::StatusOr<std::vector<int64_t>> LocalShape(const Layout& layout,
                                                absl::Span<const int64_t> shape, int rank);

// The half-open ranges of global indices that `rank` owns along each dimension of a tensor of
// `shape`, ascending. Local position p along dimension d is the p-th index of ranges[d]. A rank
// outside the mesh owns no range. Errors as ValidateLayout.
struct IndexRange {
  int64_t begin;
  int64_t end;
};
absl::StatusOr<std::vector<std::vector<IndexRange>>> OwnedRanges(const Layout& layout,
                                                                 absl::Span<const int64_t> shape,
                                                                 int rank);

}  // namespace sluice

#endif  // SLUICE_LAYOUT_H_
