// Pieces of a tensor that lies in boxes: the ranks of a piece hold cells of it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mesh/box_index.h"
#include "plan/shard/checkpoint_cells.h"
#include "plan/shard/checkpoint_pieces.h"
#include "tensor/check.h"

namespace sluice {
namespace {

class CellPieces final : public CheckpointPieces {
 public:
  CellPieces(const CheckpointPlanTensor& tensor, int64_t piece_bytes, CheckpointFlow flow,
             int rank);

  int64_t OwnBoxes() const override { return static_cast<int64_t>(own_boxes_.size()); }
  int64_t OwnBox(int64_t own) const override { return own_boxes_[static_cast<size_t>(own)]; }
  bool Choose(int64_t box, int64_t turn, CheckpointPiece* piece) const override;
  void OwnPart(const CheckpointPiece& piece, int64_t turn, CheckpointParts* own) const override;

 private:
  int64_t SharesOf(int64_t box) const override { return static_cast<int64_t>(CellsOf(box).size()); }
  std::vector<int> MembersOf(int64_t box, int64_t share, int64_t turn) const override;
  CheckpointPart& Append(int64_t box, int64_t share, CheckpointParts* parts) const override;

  void FindCells();
  // Pairs of a box and a cell that meet, ascending.
  std::vector<std::pair<int64_t, int32_t>> Meetings() const;
  // The cells that meet one of own_boxes_.
  absl::Span<const int32_t> CellsOf(int64_t box) const;
  const CheckpointCell& CellAt(int64_t box, int64_t share) const {
    return cells_[static_cast<size_t>(CellsOf(box)[static_cast<size_t>(share)])];
  }
  // Indices along a dimension that a cell and a box share; behind the cut one, all of the cell's.
  std::pair<int64_t, int64_t> SharedRange(const CheckpointCell& cell, size_t d, int64_t box) const;
  // A box of this rank in the list that has all of a cell.
  size_t BoxAround(const CheckpointCell& cell) const;

  const BoxList list_;
  const int rank_;
  const BoxIndex own_list_;            // of this rank's boxes in the list
  std::vector<CheckpointCell> cells_;  // that somebody holds
  std::vector<int64_t> own_boxes_;     // that this rank has a cell of, ascending
  std::vector<size_t> first_cell_;     // of each of them, in cells_of_boxes_; and one more
  std::vector<int32_t> cells_of_boxes_;
};

std::vector<const Box*> BoxesOf(const BoxList& list, int rank) {
  std::vector<const Box*> boxes;
  boxes.reserve(list.Of(rank).size());
  for (const Box& box : list.Of(rank)) boxes.push_back(&box);
  return boxes;
}

CellPieces::CellPieces(const CheckpointPlanTensor& tensor, int64_t piece_bytes, CheckpointFlow flow,
                       int rank)
    : CheckpointPieces(tensor, piece_bytes, flow),
      list_(tensor.layout.boxes),
      rank_(rank),
      own_list_(BoxesOf(list_, rank)) {
  if (boxes() == 0) return;
  absl::StatusOr<std::vector<CheckpointCell>> all = CutIntoCheckpointCells(list_, tensor.shape);
  SLUICE_CHECK(all.ok(), "boxes that have not been looked at");
  cells_ = *std::move(all);
  std::erase_if(cells_, [](const CheckpointCell& cell) { return cell.ranks.empty(); });
  bool packs = false;
  for (const CheckpointCell& cell : cells_) {
    for (size_t d = cut() + 1; d < dims(); ++d) packs |= cell.box.shape[d] != size(d);
  }
  if (packs) Pack();
  FindCells();
}

std::vector<std::pair<int64_t, int32_t>> CellPieces::Meetings() const {
  std::vector<std::pair<int64_t, int32_t>> meetings;
  for (size_t c = 0; c < cells_.size(); ++c) {
    const Box& cell = cells_[c].box;
    const int64_t first = cell.offset[cut()] / step();
    const int64_t end = (cell.offset[cut()] + cell.shape[cut()] - 1) / step() + 1;
    int64_t prefixes = 1;
    for (size_t d = 0; d < cut(); ++d) prefixes *= cell.shape[d];
    for (int64_t p = 0; p < prefixes; ++p) {
      int64_t prefix = 0;
      int64_t weight = 1;
      int64_t rest = p;
      for (size_t d = cut(); d-- > 0;) {
        prefix += weight * (cell.offset[d] + rest % cell.shape[d]);
        rest /= cell.shape[d];
        weight *= size(d);
      }
      for (int64_t range = first; range < end; ++range) {
        meetings.emplace_back(BoxAt(prefix, range), static_cast<int32_t>(c));
      }
    }
  }
  std::sort(meetings.begin(), meetings.end());
  return meetings;
}

void CellPieces::FindCells() {
  const std::vector<std::pair<int64_t, int32_t>> meetings = Meetings();
  int64_t messages_max = 0;
  for (size_t i = 0; i < meetings.size();) {
    size_t end = i;
    int64_t messages = 0;
    bool is_own = false;
    for (; end < meetings.size() && meetings[end].first == meetings[i].first; ++end) {
      const std::vector<int>& ranks = cells_[static_cast<size_t>(meetings[end].second)].ranks;
      messages += loads() ? static_cast<int64_t>(ranks.size()) : 1;
      is_own |= std::binary_search(ranks.begin(), ranks.end(), rank_);
    }
    messages_max = std::max(messages_max, messages);
    if (is_own) {
      own_boxes_.push_back(meetings[i].first);
      first_cell_.push_back(cells_of_boxes_.size());
      for (size_t m = i; m < end; ++m) cells_of_boxes_.push_back(meetings[m].second);
    }
    i = end;
  }
  first_cell_.push_back(cells_of_boxes_.size());
  set_messages_max(messages_max);
}

absl::Span<const int32_t> CellPieces::CellsOf(int64_t box) const {
  const auto at = std::lower_bound(own_boxes_.begin(), own_boxes_.end(), box);
  SLUICE_CHECK(at != own_boxes_.end() && *at == box, "a piece that this rank has no part in");
  const auto i = static_cast<size_t>(at - own_boxes_.begin());
  return absl::MakeConstSpan(cells_of_boxes_)
      .subspan(first_cell_[i], first_cell_[i + 1] - first_cell_[i]);
}

// All that hold a cell in a load, and in a save the one that gives it.
std::vector<int> CellPieces::MembersOf(int64_t box, int64_t share, int64_t turn) const {
  const std::vector<int>& ranks = CellAt(box, share).ranks;
  if (loads()) return ranks;
  return {ranks[static_cast<size_t>(TurnOf(turn, static_cast<int64_t>(ranks.size())))]};
}

std::pair<int64_t, int64_t> CellPieces::SharedRange(const CheckpointCell& cell, size_t d,
                                                    int64_t box) const {
  const int64_t begin = cell.box.offset[d];
  const int64_t end = begin + cell.box.shape[d];
  if (d > cut()) return {begin, end};
  const auto [first, last] = RangeOf(box);
  return {std::max(begin, first), std::min(end, last)};
}

CheckpointPart& CellPieces::Append(int64_t box, int64_t share, CheckpointParts* parts) const {
  // Parts have spans of the runs.
  if (parts->parts.empty()) parts->runs.reserve(CellsOf(box).size() * dims());
  CheckpointPart& part = parts->parts.emplace_back(EmptyPart(box));
  const CheckpointCell& cell = CellAt(box, share);
  for (size_t d = cut(); d < dims(); ++d) {
    const auto [first, last] = SharedRange(cell, d, box);
    const size_t i = d - cut();
    part.extent[i] = last - first;
    part.elements *= part.extent[i];
    const int64_t in_box = first - (d == cut() ? RangeOf(box).first : 0);
    part.runs[i] = {&parts->runs.emplace_back(RunOf(in_box, 0, part.extent[i])), 1};
  }
  return part;
}

bool CellPieces::Choose(int64_t box, int64_t turn, CheckpointPiece* piece) const {
  std::vector<int> members;
  for (int64_t share = 0; share < SharesOf(box); ++share) {
    const std::vector<int> of = MembersOf(box, share, turn);
    members.insert(members.end(), of.begin(), of.end());
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  if (!std::binary_search(members.begin(), members.end(), rank_)) return false;
  piece->file_rank =
      members[static_cast<size_t>(TurnOf(turn, static_cast<int64_t>(members.size())))];
  piece->alone = members.size() == 1;
  return true;
}

size_t CellPieces::BoxAround(const CheckpointCell& cell) const {
  const absl::Span<const Box> boxes = list_.Of(rank_);
  const auto holds = [&](size_t b) {
    for (size_t d = 0; d < dims(); ++d) {
      const int64_t at = cell.box.offset[d] - boxes[b].offset[d];
      if (at < 0 || at >= boxes[b].shape[d]) return false;
    }
    return true;
  };
  const auto near = own_list_.Find(cell.box);
  const auto at = std::find_if(near.begin(), near.end(), holds);
  SLUICE_CHECK(at != near.end(), "a cell that this rank has no box around");
  return *at;
}

void CellPieces::OwnPart(const CheckpointPiece& piece, int64_t turn, CheckpointParts* own) const {
  const Indices prefix = PrefixOf(piece.box);
  for (int64_t share = 0; share < SharesOf(piece.box); ++share) {
    const std::vector<int> members = MembersOf(piece.box, share, turn);
    if (!std::binary_search(members.begin(), members.end(), rank_)) continue;
    CheckpointPart& part = Append(piece.box, share, own);
    const CheckpointCell& cell = CellAt(piece.box, share);
    const size_t view = BoxAround(cell);
    part.view = static_cast<int>(view);
    for (size_t d = 0; d < dims(); ++d) {
      const int64_t first = d < cut() ? prefix[d] : SharedRange(cell, d, piece.box).first;
      part.local_begin[d] = first - list_.Of(rank_)[view].offset[d];
    }
  }
}

}  // namespace

std::unique_ptr<CheckpointPieces> CellPiecesOf(const CheckpointPlanTensor& tensor,
                                               int64_t piece_bytes, CheckpointFlow flow, int rank) {
  return std::make_unique<CellPieces>(tensor, piece_bytes, flow, rank);
}

}  // namespace sluice
