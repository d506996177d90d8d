// A rank that there is not is given everything: what it alone holds is a hole.
#include "plan/connect/box_coverage.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "plan/box_cells.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

constexpr int kNobody = std::numeric_limits<int>::max();

}  // namespace

absl::StatusOr<absl::optional<CoverageHole>> FindHole(const BoxList& sources, const Layout& target,
                                                      absl::Span<const int64_t> shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return absl::nullopt;
  std::vector<RankBoxes> holders(sources.ranks().begin(), sources.ranks().end());
  holders.push_back(
      {kNobody, {{std::vector<int64_t>(shape.size(), 0), {shape.begin(), shape.end()}}}});
  SLUICE_ASSIGN_OR_RETURN(BoxList with_nobody, BoxList::Create(std::move(holders)));
  TransferSpec spec;
  TensorTransfer& tensor = spec.tensors.emplace_back();
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.src.boxes = std::move(with_nobody);
  tensor.dst = target;
  SLUICE_ASSIGN_OR_RETURN(const CellSpec cells, CutIntoCells(spec));
  for (size_t c = 0; c < cells.cells.size(); ++c) {
    const TensorTransfer& cell = cells.spec.tensors[c];
    if (cell.src.mesh.ranks()[0] != kNobody) continue;  // ranks ascend
    CoverageHole hole = {cells.cells[c].offset};
    if (!target.boxes.empty()) {
      hole.ranks.assign(cell.dst.mesh.ranks().begin(), cell.dst.mesh.ranks().end());
    }
    return hole;
  }
  return absl::nullopt;
}

}  // namespace sluice
