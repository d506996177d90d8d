// A tensor that lies in boxes, cut into cells: each box has all of a cell or nothing of it.
#ifndef SLUICE_SRC_PLAN_SHARD_CHECKPOINT_CELLS_H_
#define SLUICE_SRC_PLAN_SHARD_CHECKPOINT_CELLS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sluice/layout.h"

namespace sluice {

struct CheckpointCell {
  Box box;
  std::vector<int> ranks;  // that hold it, ascending; none: nobody does
};

// Cells that make up the whole tensor of `shape`, which has elements. `boxes` lie in it, and are
// not empty. The same on all ranks. ResourceExhausted: there are too many.
absl::StatusOr<std::vector<CheckpointCell>> CutIntoCheckpointCells(const BoxList& boxes,
                                                                   absl::Span<const int64_t> shape);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_SHARD_CHECKPOINT_CELLS_H_
