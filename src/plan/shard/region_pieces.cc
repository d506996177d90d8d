// Pieces of a tensor whose ranks own regions: products of index lists, one of each dimension.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "mesh/partition.h"
#include "plan/shard/checkpoint_pieces.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// The index at a position of the list.
int64_t IndexAt(const IntervalList& list, int64_t position) {
  const absl::Span<const Interval> intervals = list.intervals();
  const auto after = std::upper_bound(
      intervals.begin(), intervals.end(), position,
      [](int64_t value, const Interval& interval) { return value < interval.position; });
  const Interval& interval = *std::prev(after);
  return interval.begin + position - interval.position;
}

class RegionPieces final : public CheckpointPieces {
 public:
  RegionPieces(const CheckpointPlanTensor& tensor, int64_t piece_bytes, CheckpointFlow flow,
               int rank);

  int64_t OwnBoxes() const override;
  int64_t OwnBox(int64_t own) const override;
  bool Choose(int64_t box, int64_t turn, CheckpointPiece* piece) const override;
  void OwnPart(const CheckpointPiece& piece, int64_t turn, CheckpointParts* own) const override;

 private:
  // The indices of a range that one part of a dimension owns, and their runs in a box.
  struct Slice {
    PartOverlap part;
    std::vector<Stretch> runs;
  };
  // A slice of each dimension from the cut one on. Regions are numbered row-major over them.
  using Region = std::array<const Slice*, kMaxTensorDims>;

  int64_t SharesOf(int64_t box) const override {
    return static_cast<int64_t>(CutSlices(box).size()) * inner_regions_;
  }
  std::vector<int> MembersOf(int64_t box, int64_t share, int64_t turn) const override;
  CheckpointPart& Append(int64_t box, int64_t share, CheckpointParts* parts) const override;

  std::vector<Slice> Split(size_t d, int64_t begin, int64_t end) const;
  bool NeedsPacking() const;
  void FindOwn(int rank);
  // The slices of the box's range.
  const std::vector<Slice>& CutSlices(int64_t box) const;
  Region RegionAt(int64_t box, int64_t number) const;
  // The region and the replica whose rank is the file rank.
  std::pair<int64_t, int64_t> ChosenOf(int64_t box, int64_t turn) const;
  int RankOf(const Region& region, int64_t replica) const;

  const Layout layout_;
  const Partition partition_;
  std::array<std::vector<Slice>, kMaxTensorDims> whole_;      // of whole dimensions
  mutable std::map<int64_t, std::vector<Slice>> cut_slices_;  // of the cut one, by range
  int64_t inner_regions_ = 1;  // combinations of slices behind the cut dimension

  // This rank's.
  bool holds_ = false;
  PartTuple own_parts_{};
  int64_t own_replica_ = 0;
  int64_t own_inner_ = 0;  // of inner_regions_
  std::array<IntervalList, kMaxTensorDims> owned_;
  std::vector<int64_t> own_ranges_;  // that its indices of the cut dimension fall in
};

RegionPieces::RegionPieces(const CheckpointPlanTensor& tensor, int64_t piece_bytes,
                           CheckpointFlow flow, int rank)
    : CheckpointPieces(tensor, piece_bytes, flow),
      layout_(tensor.layout),
      partition_(layout_, static_cast<int>(tensor.shape.size())) {
  SLUICE_CHECK(partition_.contributions() == 1, "no checkpoint of Partial tensors");
  if (boxes() == 0) return;
  set_messages_max(static_cast<int64_t>(layout_.mesh.ranks().size()) - 1);
  for (size_t d = 0; d < dims(); ++d) whole_[d] = Split(d, 0, size(d));
  if (NeedsPacking()) Pack();
  for (size_t d = cut() + 1; d < dims(); ++d) {
    inner_regions_ *= static_cast<int64_t>(whole_[d].size());
  }
  FindOwn(rank);
}

std::vector<RegionPieces::Slice> RegionPieces::Split(size_t d, int64_t begin, int64_t end) const {
  IntervalList range;
  range.Append(begin, end);
  std::vector<Slice> slices;
  for (PartOverlap& part : partition_.Split(static_cast<int>(d), size(d), range)) {
    std::vector<Stretch> runs;
    runs.reserve(part.indices.intervals().size());
    for (const Interval& interval : part.indices.intervals()) {
      runs.push_back(RunOf(interval.begin - begin, interval.position, interval.length()));
    }
    slices.push_back({std::move(part), std::move(runs)});
  }
  return slices;
}

// Whether some part may be neither one stretch of its box nor rows long enough.
bool RegionPieces::NeedsPacking() const {
  int cut_behind = 0;
  int64_t shortest_row = INT64_MAX;
  for (size_t d = cut(); d < dims(); ++d) {
    const bool is_cut_behind = d > cut() && whole_[d].size() > 1;
    cut_behind += is_cut_behind ? 1 : 0;
    for (const Slice& slice : whole_[d]) {
      if (slice.runs.size() > 1) return true;
      if (!is_cut_behind) continue;
      shortest_row = std::min(shortest_row, slice.part.indices.size() * BytesOfRow(d));
    }
  }
  return cut_behind > 1 || shortest_row < CheckpointPlan::kRowBytesMin;
}

void RegionPieces::FindOwn(int rank) {
  const std::optional<int64_t> position = layout_.mesh.PositionOf(rank);
  if (!position) return;
  own_parts_ = partition_.PartsOf(*position);
  own_replica_ = partition_.ReplicaOf(*position);
  for (size_t d = 0; d < dims(); ++d) {
    owned_[d] = partition_.Owned(static_cast<int>(d), own_parts_[d], size(d));
    if (owned_[d].empty()) return;
  }
  holds_ = true;
  for (size_t d = cut() + 1; d < dims(); ++d) {
    const auto own = std::find_if(whole_[d].begin(), whole_[d].end(), [&](const Slice& slice) {
      return slice.part.part == own_parts_[d];
    });
    own_inner_ = own_inner_ * static_cast<int64_t>(whole_[d].size()) + (own - whole_[d].begin());
  }
  for (const Interval& interval : owned_[cut()].intervals()) {
    for (int64_t range = interval.begin / step(); range * step() < interval.end; ++range) {
      if (own_ranges_.empty() || own_ranges_.back() < range) own_ranges_.push_back(range);
    }
  }
}

int64_t RegionPieces::OwnBoxes() const {
  if (!holds_) return 0;
  int64_t count = static_cast<int64_t>(own_ranges_.size());
  for (size_t d = 0; d < cut(); ++d) count *= owned_[d].size();
  return count;
}

int64_t RegionPieces::OwnBox(int64_t own) const {
  SLUICE_CHECK(holds_ && !own_ranges_.empty(), "this rank has no box");
  const int64_t count = static_cast<int64_t>(own_ranges_.size());
  const int64_t range = own_ranges_[static_cast<size_t>(own % count)];
  own /= count;
  int64_t prefix = 0;
  int64_t weight = 1;
  for (size_t d = cut(); d-- > 0;) {
    const int64_t owned = owned_[d].size();
    prefix += weight * IndexAt(owned_[d], own % owned);
    own /= owned;
    weight *= size(d);
  }
  return BoxAt(prefix, range);
}

const std::vector<RegionPieces::Slice>& RegionPieces::CutSlices(int64_t box) const {
  const auto [known, added] = cut_slices_.try_emplace(RangeNumberOf(box));
  if (added) {
    const auto [begin, end] = RangeOf(box);
    known->second = Split(cut(), begin, end);
  }
  return known->second;
}

RegionPieces::Region RegionPieces::RegionAt(int64_t box, int64_t number) const {
  Region region{};
  for (size_t d = dims(); --d > cut();) {
    const int64_t count = static_cast<int64_t>(whole_[d].size());
    region[d] = &whole_[d][static_cast<size_t>(number % count)];
    number /= count;
  }
  region[cut()] = &CutSlices(box)[static_cast<size_t>(number)];
  return region;
}

std::pair<int64_t, int64_t> RegionPieces::ChosenOf(int64_t box, int64_t turn) const {
  const int64_t replicas = partition_.replicas();
  const int64_t chosen = TurnOf(turn, SharesOf(box) * replicas);
  return {chosen / replicas, chosen % replicas};
}

// The fixed dimensions have one owner, and this rank is with it: the piece is one of its own.
int RegionPieces::RankOf(const Region& region, int64_t replica) const {
  PartTuple parts = own_parts_;
  for (size_t d = cut(); d < dims(); ++d) parts[d] = region[d]->part.part;
  return layout_.mesh.ranks()[static_cast<size_t>(partition_.PositionOf(parts, replica))];
}

std::vector<int> RegionPieces::MembersOf(int64_t box, int64_t share, int64_t turn) const {
  const Region region = RegionAt(box, share);
  if (!loads()) return {RankOf(region, ChosenOf(box, turn).second)};
  std::vector<int> ranks(static_cast<size_t>(partition_.replicas()));
  for (size_t r = 0; r < ranks.size(); ++r) ranks[r] = RankOf(region, static_cast<int64_t>(r));
  return ranks;
}

CheckpointPart& RegionPieces::Append(int64_t box, int64_t share, CheckpointParts* parts) const {
  CheckpointPart& part = parts->parts.emplace_back(EmptyPart(box));
  const Region region = RegionAt(box, share);
  for (size_t d = cut(); d < dims(); ++d) {
    const size_t i = d - cut();
    part.runs[i] = region[d]->runs;
    part.extent[i] = region[d]->part.indices.size();
    part.elements *= part.extent[i];
  }
  return part;
}

bool RegionPieces::Choose(int64_t box, int64_t turn, CheckpointPiece* piece) const {
  const auto [region, replica] = ChosenOf(box, turn);
  if (!loads() && replica != own_replica_) return false;
  piece->file_rank = RankOf(RegionAt(box, region), replica);
  piece->alone = SharesOf(box) * (loads() ? partition_.replicas() : 1) == 1;
  return true;
}

void RegionPieces::OwnPart(const CheckpointPiece& piece, int64_t /*turn*/,
                           CheckpointParts* own) const {
  const std::vector<Slice>& slices = CutSlices(piece.box);
  const auto mine = std::find_if(slices.begin(), slices.end(), [&](const Slice& slice) {
    return slice.part.part == own_parts_[cut()];
  });
  SLUICE_CHECK(mine != slices.end(), "a piece that this rank has no part in");
  CheckpointPart& part =
      Append(piece.box, (mine - slices.begin()) * inner_regions_ + own_inner_, own);
  Indices first = PrefixOf(piece.box);
  first[cut()] = mine->part.indices.intervals()[0].begin;
  for (size_t d = 0; d <= cut(); ++d) part.local_begin[d] = owned_[d].PositionOf(first[d]);
}

}  // namespace

std::unique_ptr<CheckpointPieces> RegionPiecesOf(const CheckpointPlanTensor& tensor,
                                                 int64_t piece_bytes, CheckpointFlow flow,
                                                 int rank) {
  return std::make_unique<RegionPieces>(tensor, piece_bytes, flow, rank);
}

}  // namespace sluice
