// Following one index through the cuts of a layout.
#include "workload/owned_indices.h"

#include <algorithm>
#include <cstddef>

namespace sluice::bench {
namespace {

// The size of each part but the last ones when `length` is cut into `parts`, at least 1.
int64_t StepOf(int64_t length, int64_t parts) {
  return std::max<int64_t>(1, length / parts + (length % parts != 0 ? 1 : 0));
}

// Where `rank` stands in the mesh along each of its dimensions; empty if it is not in the mesh.
std::vector<int64_t> CoordinatesOf(const Mesh& mesh, int rank) {
  for (size_t position = 0; position < mesh.ranks().size(); ++position) {
    if (mesh.ranks()[position] != rank) continue;
    std::vector<int64_t> coordinates(mesh.sizes().size());
    auto rest = static_cast<int64_t>(position);
    for (size_t m = coordinates.size(); m-- > 0; rest /= mesh.sizes()[m]) {
      coordinates[m] = rest % mesh.sizes()[m];
    }
    return coordinates;
  }
  return {};
}

}  // namespace

int64_t OwnedIndices::Cut::Begin(int64_t count) const {
  const int64_t step = StepOf(count, parts);
  return kept > count / step ? count : std::min(kept * step, count);
}

int64_t OwnedIndices::Cut::End(int64_t count) const {
  return std::min(Begin(count) + StepOf(count, parts), count);
}

OwnedIndices::OwnedIndices(const Layout& layout, int dim, int64_t size, int rank) : size_(size) {
  const std::vector<int64_t> coordinates = CoordinatesOf(layout.mesh, rank);
  in_mesh_ = coordinates.size() == layout.placements.size() && !coordinates.empty();
  if (!in_mesh_) return;
  count_ = size;
  for (size_t visit = 0; visit < layout.placements.size(); ++visit) {
    const size_t m = layout.order.empty() ? visit : static_cast<size_t>(layout.order[visit]);
    const Placement& placement = layout.placements[m];
    const bool strided = placement.kind == Placement::Kind::kStridedShard;
    if (!strided && placement.kind != Placement::Kind::kShard) continue;
    if (placement.dim != dim) continue;
    const int64_t pieces = strided ? placement.split_factor : 1;
    const Cut cut = {count_, StepOf(count_, pieces), layout.mesh.sizes()[m], coordinates[m]};
    const int64_t whole = count_ / cut.piece;
    const int64_t rest = count_ % cut.piece;
    count_ = whole * (cut.End(cut.piece) - cut.Begin(cut.piece)) + cut.End(rest) - cut.Begin(rest);
    cuts_.push_back(cut);
  }
}

OwnedIndices::Answer OwnedIndices::At(int64_t index) const {
  Answer answer = {in_mesh_, index, size_ - index};
  if (!in_mesh_) return answer;
  for (const Cut& cut : cuts_) {
    const int64_t piece = answer.position / cut.piece;
    const int64_t in_piece = answer.position % cut.piece;
    const int64_t length = std::min(cut.piece, cut.length - piece * cut.piece);
    const int64_t begin = cut.Begin(length);
    const int64_t end = cut.End(length);
    answer.owned = begin <= in_piece && in_piece < end;
    const int64_t until = in_piece < begin ? begin : answer.owned ? end : length;
    answer.count = std::min(answer.count, until - in_piece);
    if (!answer.owned) return answer;
    answer.position = piece * (cut.End(cut.piece) - cut.Begin(cut.piece)) + in_piece - begin;
  }
  return answer;
}

std::vector<OwnedIndices::Stretch> OwnedIndices::Stretches() const {
  std::vector<Stretch> stretches;
  for (int64_t index = 0; index < size_;) {
    const Answer answer = At(index);
    const int64_t end = index + answer.count;
    if (answer.owned && !stretches.empty() && stretches.back().end == index) {
      stretches.back().end = end;
    } else if (answer.owned) {
      stretches.push_back({index, end});
    }
    index = end;
  }
  return stretches;
}

}  // namespace sluice::bench
