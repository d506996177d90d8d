// Places the tensors that are planned in the tensors that the caller gives.
#ifndef SLUICE_SRC_SESSION_TRANSFER_TENSOR_PARTS_H_
#define SLUICE_SRC_SESSION_TRANSFER_TENSOR_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mesh/box_index.h"
#include "plan/box_cells.h"
#include "session/base/memory_rules.h"
#include "session/base/views.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"

namespace sluice {

// One rank's. A tensor with boxes on a side is planned as its cells; any other one as it is. A rank
// holds all of a cell in one of its boxes, or nothing of it. On a side with placements it holds
// neighbouring positions of its local tensor, or none. Immutable.
class TensorParts {
 public:
  // `cells` is what CutIntoCells makes of `spec`; null where it has no boxes.
  static absl::StatusOr<TensorParts> Make(const TransferSpec& spec, const CellSpec* cells,
                                          int rank);

  size_t tensors() const { return first_part_.size() - 1; }
  size_t parts() const { return tensor_of_.size(); }
  int TensorOf(size_t part) const { return tensor_of_[part]; }
  absl::Span<const int> tensors_of_parts() const { return tensor_of_; }
  size_t FirstPart(size_t tensor) const { return first_part_[tensor]; }
  size_t EndPart(size_t tensor) const { return first_part_[tensor + 1]; }

  // Whether this rank has elements of the part on a side.
  bool Holds(size_t part, bool is_dst) const;
  // Whether `view`, of a destination, has no memory: none of its boxes has.
  bool IsNull(size_t tensor, const TensorView& view) const;

  // Checks the caller's view of a tensor, as BindView does. Writes what its parts are of it to
  // `parts`, which begins with the tensor's first one. Errors name a box.
  absl::Status Bind(size_t tensor, bool is_dst, const TensorView& view, const MemoryRules& rules,
                    absl::Span<BoundView> parts) const;
  // Tensors of which this rank holds elements on a side, ascending: of others any view will do.
  absl::Span<const int> HeldTensors(bool is_dst) const {
    return is_dst ? held_.second : held_.first;
  }
  // Whether Bind would come to `parts`, as it did before: see IsBoundTo.
  bool IsBound(size_t tensor, bool is_dst, const TensorView& view, const MemoryRules& rules,
               absl::Span<const BoundView> parts) const;

 private:
  // A part in the memory of one side.
  struct Place {
    int view = -1;  // of the tensor's views; -1: this rank has nothing of it
    std::vector<int64_t> begin;
    std::vector<int64_t> shape;
  };
  // A tensor on one side.
  struct Side {
    bool has_boxes = false;
    std::vector<ViewNeed> views;  // of each box; or one, of the local tensor
  };
  // A pair for both sides: the source's first.
  using OnSides = std::pair<Side, Side>;
  using PlaceOnSides = std::pair<Place, Place>;

  TensorParts() = default;
  static absl::StatusOr<Side> SideOf(const Layout& layout, absl::Span<const int64_t> shape,
                                     DType dtype, int rank);
  absl::Status AddCells(const TransferSpec& spec, const CellSpec& cells, int rank);
  // A rank's part of a tensor on a side: indices along each dimension, or boxes.
  struct Own {
    std::vector<std::vector<IndexRange>> indices;
    BoxIndex boxes;
  };
  static absl::StatusOr<Own> OwnOf(const Layout& layout, absl::Span<const int64_t> shape, int rank);
  static Place PlaceOf(const Layout& layout, const Own& own, const BoxCell& cell,
                       const Layout& of_cell, absl::Span<const int64_t> cell_shape, int rank);
  const Place& PlaceAt(size_t part, bool is_dst) const {
    return is_dst ? places_[part].second : places_[part].first;
  }
  const Side& SideAt(size_t tensor, bool is_dst) const {
    return is_dst ? sides_[tensor].second : sides_[tensor].first;
  }

  std::vector<int> tensor_of_;                          // by part
  std::vector<size_t> first_part_;                      // by tensor, and one more
  std::vector<OnSides> sides_;                          // by tensor
  std::vector<bool> is_cut_;                            // by tensor: it has boxes on a side
  std::pair<std::vector<int>, std::vector<int>> held_;  // tensors; the source's first
  std::vector<PlaceOnSides> places_;  // by part, where a tensor is cut; those of others are empty
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_TENSOR_PARTS_H_
