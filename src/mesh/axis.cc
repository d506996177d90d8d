// Cutting index lists by the chunk rule: chunk(L, n) has n parts of ceil(len / n) indices, the last
// ones short or empty.
#include "mesh/axis.h"

#include <algorithm>
#include <map>

#include "tensor/round.h"

namespace sluice {
namespace {

// chunk()'s step, at least 1 so that positions can be divided by it.
int64_t Step(int64_t length, int64_t parts) { return std::max<int64_t>(1, CeilDiv(length, parts)); }

// Part `coord` of `list` under `cut`.
IntervalList ApplyCut(const IntervalList& list, const Cut& cut, int64_t coord) {
  IntervalList kept;
  const int64_t length = list.size();
  const int64_t piece_step = Step(length, cut.pieces);
  for (int64_t begin = 0; begin < length; begin += piece_step) {
    const int64_t end = std::min(begin + piece_step, length);
    const int64_t part_step = Step(end - begin, cut.parts);
    // coord * part_step cannot overflow: both are at most the tensor's size plus the mesh's.
    const int64_t first = std::min(begin + coord * part_step, end);
    kept.AppendSlice(list, first, std::min(first + part_step, end));
  }
  return kept;
}

// Splits `query`, a subset of `list`, by the coordinate that owns each index under `cut`.
std::map<int64_t, IntervalList> SplitByCut(const IntervalList& list, const Cut& cut,
                                           const IntervalList& query) {
  std::map<int64_t, IntervalList> by_coord;
  const int64_t length = list.size();
  const int64_t piece_step = Step(length, cut.pieces);
  for (const Interval& interval : query.intervals()) {
    // `list` has no touching intervals, so an interval of a subset has consecutive positions.
    int64_t position = list.PositionOf(interval.begin);
    int64_t index = interval.begin;
    while (index < interval.end) {
      const int64_t piece_begin = position / piece_step * piece_step;
      const int64_t piece_end = std::min(piece_begin + piece_step, length);
      const int64_t part_step = Step(piece_end - piece_begin, cut.parts);
      const int64_t coord = (position - piece_begin) / part_step;
      const int64_t part_end = std::min(piece_begin + (coord + 1) * part_step, piece_end);
      const int64_t count = std::min(part_end - position, interval.end - index);
      by_coord[coord].Append(index, index + count);
      position += count;
      index += count;
    }
  }
  return by_coord;
}

void Descend(const IntervalList& list, absl::Span<const Cut> cuts, const IntervalList& query,
             int64_t part, std::vector<PartOverlap>* out) {
  if (cuts.empty()) {
    out->push_back({part, query});
    return;
  }
  const Cut& cut = cuts.front();
  for (const auto& [coord, owned] : SplitByCut(list, cut, query)) {
    const int64_t child_part = part * cut.parts + coord;
    if (cuts.size() == 1) {
      out->push_back({child_part, owned});
    } else {
      Descend(ApplyCut(list, cut, coord), cuts.subspan(1), owned, child_part, out);
    }
  }
}

}  // namespace

IntervalList OwnedIndices(int64_t size, absl::Span<const Cut> cuts,
                          absl::Span<const int64_t> coords) {
  IntervalList owned(size);
  for (size_t i = 0; i < cuts.size(); ++i) owned = ApplyCut(owned, cuts[i], coords[i]);
  return owned;
}

std::vector<PartOverlap> SplitByPart(int64_t size, absl::Span<const Cut> cuts,
                                     const IntervalList& query) {
  std::vector<PartOverlap> parts;
  if (!query.empty()) Descend(IntervalList(size), cuts, query, 0, &parts);
  return parts;
}

}  // namespace sluice
