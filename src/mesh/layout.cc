// Validation of layouts, and what one rank owns under them.
#include "sluice/layout.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mesh/partition.h"
#include "sluice/tensor.h"
#include "tensor/checked.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Bytes of any tensor fit an int64_t with room to add a few of them.
constexpr int64_t kMaxElements = std::numeric_limits<int64_t>::max() / 64;

// A rank's index list along one dimension has at most this many intervals.
constexpr int64_t kMaxIntervals = int64_t{1} << 20;

absl::Status ValidateShape(absl::Span<const int64_t> shape) {
  const std::string text = absl::StrCat("shape [", absl::StrJoin(shape, ","), "]");
  if (shape.empty() || shape.size() > kMaxTensorDims) {
    return absl::InvalidArgumentError(absl::StrCat(
        text, " has ", shape.size(), " dimensions; 1 to ", kMaxTensorDims, " are possible"));
  }
  for (int64_t size : shape) {
    if (size < 0) return absl::InvalidArgumentError(absl::StrCat(text, " has a negative size"));
    if (size > kMaxElements) {
      return absl::InvalidArgumentError(absl::StrCat(text, " has a size that overflows"));
    }
  }
  if (!CheckedProduct(shape, kMaxElements)) {
    return absl::InvalidArgumentError(absl::StrCat(text, ": the number of elements overflows"));
  }
  return absl::OkStatus();
}

absl::Status ValidatePlacement(const Placement& placement, size_t mesh_dim, size_t dims) {
  if (placement.kind != Placement::Kind::kShard &&
      placement.kind != Placement::Kind::kStridedShard) {
    return absl::OkStatus();
  }
  const std::string text =
      absl::StrCat("placement ", PlacementName(placement), " of mesh dimension ", mesh_dim);
  if (placement.dim < 0 || static_cast<size_t>(placement.dim) >= dims) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, " cuts dimension ", placement.dim, " of a tensor with ", dims));
  }
  if (placement.kind == Placement::Kind::kStridedShard && placement.split_factor < 1) {
    return absl::InvalidArgumentError(absl::StrCat(text, " needs 1 piece or more"));
  }
  return absl::OkStatus();
}

// An index list is no longer than its dimension, nor than the product of its cuts' pieces.
absl::Status ValidateIntervalCounts(const Layout& layout, absl::Span<const int64_t> shape) {
  std::array<int64_t, kMaxTensorDims> pieces;
  pieces.fill(1);
  for (const Placement& placement : layout.placements) {
    if (placement.kind != Placement::Kind::kStridedShard) continue;
    const size_t d = static_cast<size_t>(placement.dim);
    pieces[d] = CheckedProduct({pieces[d], placement.split_factor}).value_or(kMaxElements);
    if (std::min(pieces[d], shape[d]) > kMaxIntervals) {
      return absl::InvalidArgumentError(absl::StrCat("StridedShard cuts dimension ", d,
                                                     " into more than ", kMaxIntervals, " pieces"));
    }
  }
  return absl::OkStatus();
}

// 0 .. dimensions-1, ascending.
bool CountsUp(absl::Span<const int> order, size_t dimensions) {
  if (order.size() != dimensions) return false;
  for (size_t m = 0; m < dimensions; ++m) {
    if (order[m] != static_cast<int>(m)) return false;
  }
  return true;
}

absl::Status ValidateOrder(const Layout& layout) {
  if (layout.order.empty()) return absl::OkStatus();
  std::vector<int> sorted = layout.order;
  std::sort(sorted.begin(), sorted.end());
  if (CountsUp(sorted, layout.placements.size())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("order [", absl::StrJoin(layout.order, ","),
                                                 "] does not visit each of the mesh's ",
                                                 layout.placements.size(), " dimensions once"));
}

absl::Status ValidateSlice(const Layout& layout, absl::Span<const int64_t> shape) {
  if (layout.whole.empty() && layout.offset.empty()) return absl::OkStatus();
  const std::string text = absl::StrCat("a slice [", absl::StrJoin(shape, ","), "] at [",
                                        absl::StrJoin(layout.offset, ","), "] of [",
                                        absl::StrJoin(layout.whole, ","), "]");
  if (layout.whole.size() != shape.size() || layout.offset.size() != shape.size()) {
    return absl::InvalidArgumentError(absl::StrCat(text, ": numbers of dimensions differ"));
  }
  SLUICE_RETURN_IF_ERROR(ValidateShape(layout.whole));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (layout.offset[d] >= 0 && shape[d] <= layout.whole[d] &&
        layout.offset[d] <= layout.whole[d] - shape[d]) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(text, " does not lie in it"));
  }
  return absl::OkStatus();
}

absl::Status ValidateBoxes(const Layout& layout, absl::Span<const int64_t> shape) {
  if (!layout.mesh.sizes().empty() || !layout.placements.empty() || !layout.order.empty() ||
      !layout.whole.empty() || !layout.offset.empty()) {
    return absl::InvalidArgumentError("a layout has boxes, or a mesh and placements, not both");
  }
  for (const RankBoxes& of : layout.boxes.ranks()) {
    for (const Box& box : of.boxes) {
      bool inside = box.shape.size() == shape.size();
      for (size_t d = 0; inside && d < shape.size(); ++d) {
        inside = box.shape[d] <= shape[d] && box.offset[d] <= shape[d] - box.shape[d];
      }
      if (inside) continue;
      return MakeError(absl::StatusCode::kInvalidArgument, RankInWords(of.rank), ": box [",
                       absl::StrJoin(box.shape, ","), "] at [", absl::StrJoin(box.offset, ","),
                       "] does not lie in a tensor of shape [", absl::StrJoin(shape, ","), "]");
    }
  }
  return absl::OkStatus();
}

}  // namespace

int MaxRank(const Layout& layout) {
  return layout.boxes.empty() ? layout.mesh.max_rank() : layout.boxes.ranks().back().rank;
}

bool IsLeftToRight(const Layout& layout) {
  return layout.order.empty() || CountsUp(layout.order, layout.placements.size());
}

absl::Status ValidateLayout(const Layout& layout, absl::Span<const int64_t> shape) {
  SLUICE_RETURN_IF_ERROR(ValidateShape(shape));
  if (!layout.boxes.empty()) return ValidateBoxes(layout, shape);
  if (layout.mesh.sizes().empty()) return absl::InvalidArgumentError("the mesh is empty");
  if (layout.placements.size() != layout.mesh.sizes().size()) {
    return absl::InvalidArgumentError(absl::StrCat(layout.placements.size(),
                                                   " placements for a mesh of ",
                                                   layout.mesh.sizes().size(), " dimensions"));
  }
  SLUICE_RETURN_IF_ERROR(ValidateOrder(layout));
  SLUICE_RETURN_IF_ERROR(ValidateSlice(layout, shape));
  for (size_t m = 0; m < layout.placements.size(); ++m) {
    SLUICE_RETURN_IF_ERROR(ValidatePlacement(layout.placements[m], m, shape.size()));
  }
  return ValidateIntervalCounts(layout, layout.whole.empty() ? shape : layout.whole);
}

absl::StatusOr<std::vector<std::vector<IndexRange>>> OwnedRanges(const Layout& layout,
                                                                 absl::Span<const int64_t> shape,
                                                                 int rank) {
  SLUICE_RETURN_IF_ERROR(ValidateLayout(layout, shape));
  if (!layout.boxes.empty()) {
    return absl::InvalidArgumentError("boxes are no product of ranges: they say what they hold");
  }
  std::vector<std::vector<IndexRange>> ranges(shape.size());
  const std::optional<int64_t> position = layout.mesh.PositionOf(rank);
  if (!position) return ranges;
  const Partition partition(layout, static_cast<int>(shape.size()));
  const PartTuple parts = partition.PartsOf(*position);
  for (size_t d = 0; d < shape.size(); ++d) {
    const IntervalList owned = partition.Owned(static_cast<int>(d), parts[d], shape[d]);
    for (const Interval& interval : owned.intervals()) {
      ranges[d].push_back({interval.begin, interval.end});
    }
  }
  return ranges;
}

absl::StatusOr<std::vector<int64_t>> LocalShape(const Layout& layout,
                                                absl::Span<const int64_t> shape, int rank) {
  SLUICE_ASSIGN_OR_RETURN(std::vector<std::vector<IndexRange>> ranges,
                          OwnedRanges(layout, shape, rank));
  std::vector<int64_t> local(shape.size(), 0);
  for (size_t d = 0; d < shape.size(); ++d) {
    for (const IndexRange& range : ranges[d]) local[d] += range.end - range.begin;
  }
  return local;
}

}  // namespace sluice
