// Layouts: how tensors lie over meshes of ranks, with the meaning of PyTorch DTensor.
//
// For each tensor dimension d a rank owns an ascending list of global indices L_d, at first
// 0..S_d-1. Mesh dimensions are visited one after the other; each one's placement cuts at most one
// L_d. docs/layouts.md gives the rule and examples.
#ifndef SLUICE_LAYOUT_H_
#define SLUICE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "sluice/tensor.h"

namespace sluice {

// An N-D grid over a list of distinct ranks, row-major. Immutable; copies share their content.
class Mesh {
 public:
  // An empty mesh: no dimensions, no ranks. Only a placeholder until Create's result is assigned.
  Mesh();

  // `sizes`: ranks per mesh dimension, each at least 1. `ranks`: any order, as many as the product
  // of `sizes`, distinct, not negative. InvalidArgument says which of these does not hold.
  static absl::StatusOr<Mesh> Create(std::vector<int64_t> sizes, std::vector<int> ranks);

  // A mesh of consecutive ranks, from `first_rank` on. At most kRangeRanksMax; errors as Create.
  static constexpr int64_t kRangeRanksMax = int64_t{1} << 20;
  static absl::StatusOr<Mesh> Range(std::vector<int64_t> sizes, int first_rank = 0);

  absl::Span<const int64_t> sizes() const { return rep_->sizes; }
  absl::Span<const int> ranks() const { return rep_->ranks; }

  // The position of `rank` in ranks(), or nothing if the mesh lacks it. O(log ranks).
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

// The effect of one mesh dimension on a tensor.
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

// Global indices [offset[d], offset[d] + shape[d]) of each tensor dimension d.
struct Box {
  std::vector<int64_t> offset = {};
  std::vector<int64_t> shape = {};

  friend bool operator==(const Box&, const Box&) = default;
};

// The boxes that one rank holds, in the order of its views.
struct RankBoxes {
  int rank = -1;
  std::vector<Box> boxes = {};
};

// Which boxes of a tensor which ranks hold. Immutable; copies share their content.
class BoxList {
 public:
  // The most boxes of a list.
  static constexpr int64_t kBoxesMax = int64_t{1} << 20;

  // An empty list.
  BoxList();

  // InvalidArgument says which of these does not hold: ranks are distinct and not negative. Each
  // has a box. All boxes have one number of dimensions, none is empty, and those of one rank do not
  // overlap. ResourceExhausted: there are more than kBoxesMax, or too many to find out.
  static absl::StatusOr<BoxList> Create(std::vector<RankBoxes> ranks);

  absl::Span<const RankBoxes> ranks() const { return *ranks_; }
  bool empty() const { return ranks_->empty(); }
  // The boxes of `rank`; none if it is not in the list. O(log ranks).
  absl::Span<const Box> Of(int rank) const;

  // True if both have the same content.
  friend bool operator==(const BoxList& a, const BoxList& b);

  // As Mesh has it.
  const void* identity() const { return ranks_.get(); }

 private:
  explicit BoxList(std::shared_ptr<const std::vector<RankBoxes>> ranks)
      : ranks_(std::move(ranks)) {}
  std::shared_ptr<const std::vector<RankBoxes>> ranks_;  // ascending
};

// A mesh and one placement for each of its dimensions; or boxes in place of both.
struct Layout {
  // Reads MESH@RANKS:PLACEMENTS, as command lines have it: "2,4@0-7:R,S(0)". Without "@RANKS" the
  // mesh is of the ranks from 0 on. An order may follow: "2,4@0-7:S(0),S(0):1,0". InvalidArgument
  // quotes what is wrong.
  static absl::StatusOr<Layout> Parse(absl::string_view text);

  Mesh mesh = {};
  std::vector<Placement> placements = {};
  // The mesh dimensions in the order in which they are visited: a permutation of 0 .. dimensions-1.
  // Empty: left to right. FSDP over tensor parallelism on a (dp, tp) mesh is S(0), S(0) in the
  // order {1, 0}: cut by tp first. Coordinates, which ranks are replicas, and the order in which
  // Partial dimensions are reduced do not depend on it.
  std::vector<int> order = {};
  // For a tensor that is a slice of a larger one: the placements cut the larger tensor, of shape
  // `whole`. The tensor of this layout begins at `offset` in it, and each rank owns what it owns of
  // the larger one there. Both have a number for each tensor dimension; or none, for no slice.
  std::vector<int64_t> whole = {};
  std::vector<int64_t> offset = {};
  // In place of all the others: each rank holds its boxes, and nothing else. Ranks may hold the
  // same elements. A source has to hold all that its target needs.
  BoxList boxes = {};
};

// The text that Layout::Parse reads, of a layout without boxes that is no slice.
std::string LayoutName(const Layout& layout);

// The largest rank that the layout names; -1 if it names none.
int MaxRank(const Layout& layout);

// True if mesh dimensions are visited left to right, whether the layout says so or nothing.
bool IsLeftToRight(const Layout& layout);

// OK if `layout` can hold a tensor of `shape`. The shape has 1 to kMaxTensorDims dimensions, no
// negative size, and a number of elements that an int64_t holds. The layout has one placement per
// mesh dimension, shards dimensions that exist, and visits each mesh dimension once. A slice lies
// in its larger tensor.
absl::Status ValidateLayout(const Layout& layout, absl::Span<const int64_t> shape);

// Shape of the dense local tensor of `rank`: how many indices the rank owns along each dimension.
// All are 0 if the rank is not in the mesh. Errors as ValidateLayout; InvalidArgument of a layout
// with boxes, each of which has a shape of its own.
absl::StatusOr<std::vector<int64_t>> LocalShape(const Layout& layout,
                                                absl::Span<const int64_t> shape, int rank);

// The half-open ranges of global indices that `rank` owns along each dimension of a tensor of
// `shape`, ascending. Local position p along dimension d is the p-th index of ranges[d]. A rank
// outside the mesh owns no range. Errors as LocalShape.
struct IndexRange {
  int64_t begin;
  int64_t end;
};
absl::StatusOr<std::vector<std::vector<IndexRange>>> OwnedRanges(const Layout& layout,
                                                                 absl::Span<const int64_t> shape,
                                                                 int rank);

// One rank's part of a tensor.
struct TensorPart {
  std::string name = {};
  std::vector<int64_t> shape = {};  // of the whole tensor
  DType dtype = DType::kF32;
  Layout layout = {};
  // The rank's local tensor, of LocalShape's shape; ignored where it owns nothing. With boxes: a
  // view of each, in TensorView::boxes.
  TensorView view = {};
};

// Memory of a rank's part: dense, on the host, zero at first. Movable only.
class LocalTensor {
 public:
  // Makes the memory of `rank` for a tensor of `shape`. Errors as LocalShape.
  static absl::StatusOr<LocalTensor> Create(const Layout& layout, absl::Span<const int64_t> shape,
                                            DType dtype, int rank);

  // Valid as long as the memory, which moves with this object.
  const TensorView& view() const { return view_; }
  // In the view's order. T has the dtype's size.
  template <typename T>
  absl::Span<T> elements() {
    return absl::MakeSpan(reinterpret_cast<T*>(memory_.get()), bytes_ / sizeof(T));
  }
  // The row-major index in the whole tensor of each element, in the view's order.
  std::vector<int64_t> GlobalIndices() const;

 private:
  LocalTensor() = default;

  TensorView view_;
  size_t bytes_ = 0;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<int64_t> whole_;  // the tensor's shape
  std::vector<std::vector<IndexRange>> owned_;
};

}  // namespace sluice

#endif  // SLUICE_LAYOUT_H_
