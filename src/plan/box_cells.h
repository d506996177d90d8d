// Tensors that lie in boxes, as tensors that the planner knows.
//
// A tensor with boxes on a side is cut into cells. A cell is a box of the tensor that each box
// contains, or has nothing of. So the ranks that hold a cell are replicas of it, and on a side with
// placements a cell is a slice. Each cell is planned as a tensor of its own.
#ifndef SLUICE_SRC_PLAN_BOX_CELLS_H_
#define SLUICE_SRC_PLAN_BOX_CELLS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/layout.h"
#include "sluice/transfer.h"

namespace sluice {

// A tensor of the spec, or a part of one.
struct BoxCell {
  int32_t tensor = 0;                // of the spec
  std::vector<int64_t> offset = {};  // in the tensor; empty: the cell is all of it
};

// The cells that are planned in place of a spec's tensors.
struct CellSpec {
  TransferSpec spec;           // without boxes; cells have no names
  std::vector<BoxCell> cells;  // parallel to the spec's tensors

  // The most cells of a spec.
  static constexpr int64_t kCellsMax = int64_t{1} << 20;
};

// True if a tensor has boxes on a side.
bool HasBoxes(const TransferSpec& spec);

// Cuts all tensors with boxes. Cells of a tensor come one after the other, equally on all ranks.
// * InvalidArgument: no rank holds elements that a target needs. Names the tensor, the elements and
//   a rank.
// * ResourceExhausted: there would be more than kCellsMax.
// `spec` is one that ValidateSpec accepts.
absl::StatusOr<CellSpec> CutIntoCells(const TransferSpec& spec);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_BOX_CELLS_H_
