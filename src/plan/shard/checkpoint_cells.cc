// A rank that there is not is given everything: what it alone holds is nobody's.
#include "plan/shard/checkpoint_cells.h"

#include <limits>
#include <utility>

#include "plan/box_cells.h"

namespace sluice {

absl::StatusOr<std::vector<CheckpointCell>> CutIntoCheckpointCells(
    const BoxList& boxes, absl::Span<const int64_t> shape) {
  constexpr int kNoRank = std::numeric_limits<int>::max();
  std::vector<RankBoxes> holders(boxes.ranks().begin(), boxes.ranks().end());
  const Box whole = {std::vector<int64_t>(shape.size(), 0), {shape.begin(), shape.end()}};
  holders.push_back({kNoRank, {whole}});
  absl::StatusOr<BoxList> with_no_rank = BoxList::Create(std::move(holders));
  if (!with_no_rank.ok()) return with_no_rank.status();
  absl::StatusOr<Mesh> anybody = Mesh::Create({1}, {0});
  if (!anybody.ok()) return anybody.status();
  TransferSpec spec;
  TensorTransfer& tensor = spec.tensors.emplace_back();
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.src.boxes = *std::move(with_no_rank);
  tensor.dst = {*std::move(anybody), {Placement::Replicate()}};
  const absl::StatusOr<CellSpec> cut = CutIntoCells(spec);
  if (!cut.ok()) return cut.status();
  std::vector<CheckpointCell> cells;
  cells.reserve(cut->cells.size());
  for (size_t c = 0; c < cut->cells.size(); ++c) {
    const TensorTransfer& cell = cut->spec.tensors[c];
    const absl::Span<const int> ranks = cell.src.mesh.ranks();  // ascending, kNoRank at the end
    cells.push_back({{cut->cells[c].offset, cell.shape}, {ranks.begin(), ranks.end() - 1}});
  }
  return cells;
}

}  // namespace sluice
