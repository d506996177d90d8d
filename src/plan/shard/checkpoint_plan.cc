// Boxes, their members, and what each member has of them.
#include "plan/shard/checkpoint_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "mesh/box_index.h"
#include "plan/shard/checkpoint_cells.h"
#include "tensor/check.h"
#include "tensor/round.h"

namespace sluice {
namespace {

using Indices = std::array<int64_t, kMaxTensorDims>;

int64_t Product(absl::Span<const int64_t> sizes, size_t from) {
  int64_t product = 1;
  for (size_t d = from; d < sizes.size(); ++d) product *= sizes[d];
  return product;
}

// The index at a position of the list.
int64_t IndexAt(const IntervalList& list, int64_t position) {
  const absl::Span<const Interval> intervals = list.intervals();
  const auto after = std::upper_bound(
      intervals.begin(), intervals.end(), position,
      [](int64_t value, const Interval& interval) { return value < interval.position; });
  const Interval& interval = *std::prev(after);
  return interval.begin + position - interval.position;
}

// The sum of the digits of `number` to the base `count`, modulo `count`. It goes round like the
// last digit does. It does not stand still for numbers that are `count` apart, as those of one
// region's boxes may be.
int64_t TurnOf(int64_t number, int64_t count) {
  if (count == 1) return 0;
  int64_t sum = 0;
  for (; number > 0; number /= count) sum += number % count;
  return sum % count;
}

// What partitions are made of where a tensor has boxes, and nobody looks at them.
Layout WithoutBoxes(const Layout& layout) {
  if (layout.boxes.empty()) return layout;
  absl::StatusOr<Mesh> mesh = Mesh::Create({1}, {0});
  SLUICE_CHECK(mesh.ok(), "a mesh of one rank is valid");
  return {*std::move(mesh), {Placement::Replicate()}};
}

// Numbers of layouts, equal for equal ones. They must not depend on which layouts share memory:
// that may differ between ranks.
class LayoutNumbers {
 public:
  int64_t Of(const Layout& layout) {
    std::vector<int64_t> key = {NumberOf(layout.mesh), NumberOf(layout.boxes)};
    for (const Placement& placement : layout.placements) {
      key.push_back(static_cast<int64_t>(placement.kind));
      key.push_back(placement.dim);
      key.push_back(placement.split_factor);
    }
    for (const auto* of_dims : {&layout.whole, &layout.offset}) {
      key.push_back(-1);
      key.insert(key.end(), of_dims->begin(), of_dims->end());
    }
    if (!IsLeftToRight(layout)) key.insert(key.end(), layout.order.begin(), layout.order.end());
    return Number(std::move(key), &layouts_);
  }

 private:
  using Index = std::map<std::vector<int64_t>, int64_t>;

  static int64_t Number(std::vector<int64_t> key, Index* index) {
    return index->try_emplace(std::move(key), static_cast<int64_t>(index->size())).first->second;
  }

  int64_t NumberOf(const Mesh& mesh) {
    const auto [known, added] = by_identity_.try_emplace(mesh.identity(), 0);
    if (!added) return known->second;
    std::vector<int64_t> key(mesh.sizes().begin(), mesh.sizes().end());
    key.push_back(-1);
    key.insert(key.end(), mesh.ranks().begin(), mesh.ranks().end());
    return known->second = Number(std::move(key), &meshes_);
  }

  int64_t NumberOf(const BoxList& boxes) {
    const auto [known, added] = by_identity_.try_emplace(boxes.identity(), 0);
    if (!added) return known->second;
    std::vector<int64_t> key;
    for (const RankBoxes& of : boxes.ranks()) {
      key.push_back(-1 - of.rank);
      for (const Box& box : of.boxes) {
        key.insert(key.end(), box.offset.begin(), box.offset.end());
        key.insert(key.end(), box.shape.begin(), box.shape.end());
      }
    }
    return known->second = Number(std::move(key), &lists_);
  }

  std::map<const void*, int64_t> by_identity_;
  Index meshes_;
  Index lists_;
  Index layouts_;
};

// Stretches of a list between positions in a box that begins at `origin` and in the part.
void AppendRuns(const IntervalList& list, int64_t origin, CheckpointFlow flow,
                std::vector<Stretch>* runs) {
  for (const Interval& interval : list.intervals()) {
    const int64_t in_box = interval.begin - origin;
    runs->push_back(flow == CheckpointFlow::kLoad
                        ? Stretch{in_box, interval.position, interval.length()}
                        : Stretch{interval.position, in_box, interval.length()});
  }
}

}  // namespace

// Tensors of equal shape, element size and layout: everything but where they begin.
struct CheckpointPlan::TensorClass {
  TensorClass(const CheckpointPlanTensor& tensor, int64_t piece_bytes, CheckpointFlow flow,
              int rank);

  size_t dims() const { return shape.size(); }
  void Cut(int64_t box_bytes);
  bool NeedsPacking() const;
  void FindOwn(int rank);
  int64_t OwnBoxes() const;
  int64_t OwnBox(int64_t own) const;
  Indices PrefixOf(int64_t box) const;
  int64_t BoxBytes(int64_t box) const;
  // The range of the cut dimension.
  std::pair<int64_t, int64_t> RangeOf(int64_t box) const;
  // Who owns what of the range.
  const std::vector<PartOverlap>& CutParts(int64_t box) const;

  const std::vector<int64_t> shape;
  const int64_t element_bytes;
  const CheckpointFlow flow;
  const Layout layout;
  const Partition partition;
  std::array<std::vector<PartOverlap>, kMaxTensorDims> parts;  // of whole dimensions
  size_t cut = 0;                                              // the cut dimension
  int64_t row_bytes = 1;                                       // of one index of it
  int64_t step = 1;                                            // indices of it in one box
  int64_t ranges = 0;                                          // boxes of one prefix
  int64_t boxes = 0;
  bool packs = false;
  int64_t inner_regions = 1;  // combinations of parts behind the cut dimension
  std::array<std::vector<std::vector<Stretch>>, kMaxTensorDims> runs;  // behind the cut, by part
  mutable std::map<int64_t, std::vector<PartOverlap>> cut_parts;       // by range

  // This rank's.
  std::optional<int64_t> position;
  PartTuple own_parts{};
  int64_t own_replica = 0;
  int64_t own_inner = 0;
  std::array<IntervalList, kMaxTensorDims> owned;
  std::vector<int64_t> own_ranges;  // that its indices of the cut dimension fall in

  int64_t turns = 0;  // boxes of tensors of this class so far

  // Where the tensor lies in boxes. What is of partitions above is of no use then.
  bool has_cells() const { return !list.empty(); }
  void FindCells(int64_t piece_bytes, int rank);
  // Indices along a dimension that a cell and a piece's box share; from behind the cut on, all of
  // the cell's.
  std::pair<int64_t, int64_t> SharedRange(const CheckpointCell& cell, size_t d, int64_t box) const;
  // The cells that meet one of own_boxes.
  absl::Span<const int32_t> CellsOf(int64_t box) const;
  // Who gives a cell to a file.
  int GiverOf(const CheckpointCell& cell, int64_t turn) const {
    return cell.ranks[static_cast<size_t>(TurnOf(turn, static_cast<int64_t>(cell.ranks.size())))];
  }

  const BoxList list;
  std::optional<BoxIndex> own_list;   // of this rank's boxes in the list
  std::vector<CheckpointCell> cells;  // that somebody holds
  std::vector<int64_t> own_boxes;     // that this rank has a cell of, ascending
  std::vector<size_t> first_cell;     // of each of them, in cells_of_boxes; and one more
  std::vector<int32_t> cells_of_boxes;
  int messages_max = 0;
};

CheckpointPlan::TensorClass::TensorClass(const CheckpointPlanTensor& tensor, int64_t piece_bytes,
                                         CheckpointFlow the_flow, int rank)
    : shape(tensor.shape),
      element_bytes(tensor.element_bytes),
      flow(the_flow),
      layout(WithoutBoxes(tensor.layout)),
      partition(layout, static_cast<int>(tensor.shape.size())),
      list(tensor.layout.boxes) {
  SLUICE_CHECK(partition.contributions() == 1, "no checkpoint of Partial tensors");
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  for (size_t d = 0; d < dims(); ++d) {
    parts[d] = partition.Split(static_cast<int>(d), shape[d], IntervalList(shape[d]));
  }
  Cut(piece_bytes);
  if (has_cells()) {
    FindCells(piece_bytes, rank);
    return;
  }
  packs = NeedsPacking();
  // The second area is to lie beside the box.
  if (packs) Cut(piece_bytes / 2);
  for (size_t d = cut + 1; d < dims(); ++d) {
    inner_regions *= static_cast<int64_t>(parts[d].size());
    for (const PartOverlap& part : parts[d]) {
      AppendRuns(part.indices, 0, flow, &runs[d].emplace_back());
    }
  }
  FindOwn(rank);
}

void CheckpointPlan::TensorClass::Cut(int64_t box_bytes) {
  cut = 0;
  while (cut + 1 < dims() && Product(shape, cut + 1) * element_bytes > box_bytes) ++cut;
  row_bytes = Product(shape, cut + 1) * element_bytes;
  const int64_t step_max = std::max<int64_t>(1, box_bytes / row_bytes);
  step = CeilDiv(shape[cut], CeilDiv(shape[cut], step_max));
  ranges = CeilDiv(shape[cut], step);
  boxes = ranges;
  for (size_t d = 0; d < cut; ++d) boxes *= shape[d];
}

// Whether some part may be neither one stretch of its box nor rows long enough.
bool CheckpointPlan::TensorClass::NeedsPacking() const {
  int cut_behind = 0;
  int64_t shortest_row = INT64_MAX;
  for (size_t d = cut; d < dims(); ++d) {
    if (d > cut && parts[d].size() > 1) ++cut_behind;
    for (const PartOverlap& part : parts[d]) {
      if (part.indices.intervals().size() > 1) return true;
      if (d == cut || parts[d].size() == 1) continue;
      shortest_row =
          std::min(shortest_row, part.indices.size() * Product(shape, d + 1) * element_bytes);
    }
  }
  return cut_behind > 1 || shortest_row < kRowBytesMin;
}

void CheckpointPlan::TensorClass::FindOwn(int rank) {
  position = layout.mesh.PositionOf(rank);
  if (!position) return;
  own_parts = partition.PartsOf(*position);
  own_replica = partition.ReplicaOf(*position);
  for (size_t d = 0; d < dims(); ++d) {
    owned[d] = partition.Owned(static_cast<int>(d), own_parts[d], shape[d]);
    if (owned[d].empty()) {
      position.reset();
      return;
    }
  }
  for (size_t d = cut + 1; d < dims(); ++d) {
    const auto own = std::find_if(parts[d].begin(), parts[d].end(), [&](const PartOverlap& part) {
      return part.part == own_parts[d];
    });
    own_inner = own_inner * static_cast<int64_t>(parts[d].size()) + (own - parts[d].begin());
  }
  for (const Interval& interval : owned[cut].intervals()) {
    for (int64_t range = interval.begin / step; range * step < interval.end; ++range) {
      if (own_ranges.empty() || own_ranges.back() < range) own_ranges.push_back(range);
    }
  }
}

int64_t CheckpointPlan::TensorClass::OwnBoxes() const {
  if (!position) return 0;
  int64_t count = static_cast<int64_t>(own_ranges.size());
  for (size_t d = 0; d < cut; ++d) count *= owned[d].size();
  return count;
}

int64_t CheckpointPlan::TensorClass::OwnBox(int64_t own) const {
  SLUICE_CHECK(!own_ranges.empty(), "this rank has no box");
  const int64_t count = static_cast<int64_t>(own_ranges.size());
  const int64_t range = own_ranges[static_cast<size_t>(own % count)];
  own /= count;
  int64_t prefix = 0;
  int64_t weight = 1;
  for (size_t d = cut; d-- > 0;) {
    const int64_t size = owned[d].size();
    SLUICE_CHECK(size > 0, "this rank has no box");
    prefix += weight * IndexAt(owned[d], own % size);
    own /= size;
    weight *= shape[d];
  }
  return prefix * ranges + range;
}

Indices CheckpointPlan::TensorClass::PrefixOf(int64_t box) const {
  Indices prefix{};
  box /= ranges;
  for (size_t d = cut; d-- > 0;) {
    prefix[d] = box % shape[d];
    box /= shape[d];
  }
  return prefix;
}

std::pair<int64_t, int64_t> CheckpointPlan::TensorClass::RangeOf(int64_t box) const {
  const int64_t begin = box % ranges * step;
  return {begin, std::min(begin + step, shape[cut])};
}

int64_t CheckpointPlan::TensorClass::BoxBytes(int64_t box) const {
  const auto [begin, end] = RangeOf(box);
  return (end - begin) * row_bytes;
}

const std::vector<PartOverlap>& CheckpointPlan::TensorClass::CutParts(int64_t box) const {
  const auto [known, added] = cut_parts.try_emplace(box % ranges);
  if (added) {
    const auto [begin, end] = RangeOf(box);
    IntervalList range;
    range.Append(begin, end);
    known->second = partition.Split(static_cast<int>(cut), shape[cut], range);
  }
  return known->second;
}

void CheckpointPlan::TensorClass::FindCells(int64_t piece_bytes, int rank) {
  absl::StatusOr<std::vector<CheckpointCell>> all = CutIntoCheckpointCells(list, shape);
  SLUICE_CHECK(all.ok(), "boxes that have not been looked at");
  cells = *std::move(all);
  std::vector<const Box*> own;
  for (const Box& box : list.Of(rank)) own.push_back(&box);
  own_list.emplace(own);
  cells.erase(std::remove_if(cells.begin(), cells.end(),
                             [](const CheckpointCell& cell) { return cell.ranks.empty(); }),
              cells.end());
  for (const CheckpointCell& cell : cells) {
    for (size_t d = cut + 1; d < dims(); ++d) packs |= cell.box.shape[d] != shape[d];
  }
  if (packs) Cut(piece_bytes / 2);
  std::vector<std::pair<int64_t, int32_t>> meetings;  // of boxes and cells
  for (size_t c = 0; c < cells.size(); ++c) {
    const Box& cell = cells[c].box;
    const int64_t first = cell.offset[cut] / step;
    const int64_t end = (cell.offset[cut] + cell.shape[cut] - 1) / step + 1;
    int64_t prefixes = 1;
    for (size_t d = 0; d < cut; ++d) prefixes *= cell.shape[d];
    for (int64_t p = 0; p < prefixes; ++p) {
      int64_t prefix = 0;
      int64_t weight = 1;
      for (int64_t d = static_cast<int64_t>(cut) - 1, rest = p; d >= 0; --d) {
        const size_t i = static_cast<size_t>(d);
        prefix += weight * (cell.offset[i] + rest % cell.shape[i]);
        rest /= cell.shape[i];
        weight *= shape[i];
      }
      for (int64_t range = first; range < end; ++range) {
        meetings.emplace_back(prefix * ranges + range, static_cast<int32_t>(c));
      }
    }
  }
  std::sort(meetings.begin(), meetings.end());
  for (size_t i = 0; i < meetings.size();) {
    size_t end = i;
    int64_t messages = 0;
    bool is_own = false;
    for (; end < meetings.size() && meetings[end].first == meetings[i].first; ++end) {
      const std::vector<int>& ranks = cells[static_cast<size_t>(meetings[end].second)].ranks;
      messages += flow == CheckpointFlow::kLoad ? static_cast<int64_t>(ranks.size()) : 1;
      is_own |= std::binary_search(ranks.begin(), ranks.end(), rank);
    }
    messages_max = static_cast<int>(std::max<int64_t>(messages_max, messages));
    if (is_own) {
      own_boxes.push_back(meetings[i].first);
      first_cell.push_back(cells_of_boxes.size());
      for (size_t m = i; m < end; ++m) cells_of_boxes.push_back(meetings[m].second);
    }
    i = end;
  }
  first_cell.push_back(cells_of_boxes.size());
}

absl::Span<const int32_t> CheckpointPlan::TensorClass::CellsOf(int64_t box) const {
  const auto at = std::lower_bound(own_boxes.begin(), own_boxes.end(), box);
  SLUICE_CHECK(at != own_boxes.end() && *at == box, "a piece that this rank has no part in");
  const auto i = static_cast<size_t>(at - own_boxes.begin());
  return absl::MakeConstSpan(cells_of_boxes)
      .subspan(first_cell[i], first_cell[i + 1] - first_cell[i]);
}

std::pair<int64_t, int64_t> CheckpointPlan::TensorClass::SharedRange(const CheckpointCell& cell,
                                                                     size_t d, int64_t box) const {
  const int64_t begin = cell.box.offset[d];
  const int64_t end = begin + cell.box.shape[d];
  if (d > cut) return {begin, end};
  const auto [first, last] = RangeOf(box);
  return {std::max(begin, first), std::min(end, last)};
}

CheckpointPlan::CheckpointPlan(const std::vector<CheckpointPlanTensor>& tensors,
                               int64_t piece_bytes, CheckpointFlow flow, int rank)
    : flow_(flow), rank_(rank) {
  LayoutNumbers layouts;
  // All that tells classes apart, in numbers.
  std::map<std::vector<int64_t>, TensorClass*> known;
  for (const CheckpointPlanTensor& tensor : tensors) {
    std::vector<int64_t> key = tensor.shape;
    key.push_back(-1);
    key.push_back(tensor.element_bytes);
    key.push_back(layouts.Of(tensor.layout));
    TensorClass*& of = known[std::move(key)];
    if (of == nullptr) {
      classes_.push_back(std::make_unique<TensorClass>(tensor, piece_bytes, flow, rank));
      of = classes_.back().get();
      of->turns = boxes_;
      if (of->boxes > 0) {
        box_bytes_max_ = std::max(box_bytes_max_, of->BoxBytes(0));
        if (of->packs) packed_bytes_max_ = std::max(packed_bytes_max_, of->BoxBytes(0));
        messages_max_ =
            std::max(messages_max_, of->has_cells()
                                        ? of->messages_max
                                        : static_cast<int>(tensor.layout.mesh.ranks().size()) - 1);
      }
    }
    tensors_.push_back({of, boxes_, of->turns});
    of->turns += of->boxes;
    boxes_ += of->boxes;
    SLUICE_CHECK(boxes_ <= kBoxesMax, "more pieces than bucket ids");
  }
}

CheckpointPlan::~CheckpointPlan() = default;

CheckpointPlan::Choice CheckpointPlan::ChoiceOf(const Tensor& tensor, int64_t box) const {
  const TensorClass& of = *tensor.of;
  Choice choice;
  const int64_t regions = static_cast<int64_t>(of.CutParts(box).size()) * of.inner_regions;
  const int64_t replicas = of.partition.replicas();
  choice.members = flow_ == CheckpointFlow::kLoad ? regions * replicas : regions;
  const int64_t turn = TurnOf(tensor.turn + box, regions * replicas);
  choice.region = turn / replicas;
  choice.replica = turn % replicas;
  return choice;
}

// The fixed dimensions have one owner, and this rank is with it: the piece is one of its own.
int CheckpointPlan::RankOf(const Tensor& tensor, int64_t box, int64_t region,
                           int64_t replica) const {
  const TensorClass& of = *tensor.of;
  PartTuple parts = of.own_parts;
  for (size_t d = of.dims(); --d > of.cut;) {
    const int64_t count = static_cast<int64_t>(of.parts[d].size());
    parts[d] = of.parts[d][static_cast<size_t>(region % count)].part;
    region /= count;
  }
  parts[of.cut] = of.CutParts(box)[static_cast<size_t>(region)].part;
  return of.layout.mesh.ranks()[static_cast<size_t>(of.partition.PositionOf(parts, replica))];
}

void CheckpointPlan::Place(const Tensor& tensor, int64_t box, CheckpointPiece* piece) const {
  const TensorClass& of = *tensor.of;
  piece->tensor = static_cast<int>(&tensor - tensors_.data());
  piece->box = box;
  piece->number = tensor.first_box + box;
  piece->offset =
      box / of.ranges * of.shape[of.cut] * of.row_bytes + of.RangeOf(box).first * of.row_bytes;
  piece->bytes = of.BoxBytes(box);
}

// False: in a save, others give all that this rank has, too.
bool CheckpointPlan::FillBoxPiece(const Tensor& tensor, int64_t box, CheckpointPiece* piece) const {
  const TensorClass& of = *tensor.of;
  const int64_t turn = tensor.turn + box;
  std::vector<int> members;
  for (const int32_t c : of.CellsOf(box)) {
    const CheckpointCell& cell = of.cells[static_cast<size_t>(c)];
    if (flow_ == CheckpointFlow::kLoad) {
      members.insert(members.end(), cell.ranks.begin(), cell.ranks.end());
    } else {
      members.push_back(of.GiverOf(cell, turn));
    }
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  if (!std::binary_search(members.begin(), members.end(), rank_)) return false;
  Place(tensor, box, piece);
  piece->file_rank =
      members[static_cast<size_t>(TurnOf(turn, static_cast<int64_t>(members.size())))];
  piece->alone = members.size() == 1;
  return true;
}

// One part of each cell: this rank's own, or all but those of the file rank.
void CheckpointPlan::AppendCellParts(const CheckpointPiece& piece, bool own,
                                     CheckpointParts* parts) const {
  const Tensor& tensor = tensors_[static_cast<size_t>(piece.tensor)];
  const TensorClass& of = *tensor.of;
  const Indices prefix = of.PrefixOf(piece.box);
  const auto [begin, end] = of.RangeOf(piece.box);
  for (const int32_t c : of.CellsOf(piece.box)) {
    const CheckpointCell& cell = of.cells[static_cast<size_t>(c)];
    std::vector<int> ranks = flow_ == CheckpointFlow::kLoad
                                 ? cell.ranks
                                 : std::vector<int>{of.GiverOf(cell, tensor.turn + piece.box)};
    if (own) {
      if (!std::binary_search(ranks.begin(), ranks.end(), rank_)) continue;
      ranks.clear();
    } else {
      ranks.erase(std::remove(ranks.begin(), ranks.end(), piece.file_rank), ranks.end());
      if (ranks.empty()) continue;
    }
    CheckpointPart& part = parts->parts.emplace_back();
    part.ranks = std::move(ranks);
    part.first_dim = static_cast<int>(of.cut);
    part.dims = static_cast<int>(of.dims() - of.cut);
    part.elements = 1;
    for (size_t d = of.cut; d < of.dims(); ++d) {
      const auto [first, last] = of.SharedRange(cell, d, piece.box);
      const int64_t in_box = first - (d == of.cut ? begin : 0);
      const size_t i = d - of.cut;
      part.extent[i] = last - first;
      part.box_size[i] = d == of.cut ? end - begin : of.shape[d];
      part.elements *= part.extent[i];
      parts->cut_runs.push_back(flow_ == CheckpointFlow::kLoad
                                    ? Stretch{in_box, 0, part.extent[i]}
                                    : Stretch{0, in_box, part.extent[i]});
    }
    if (!own) continue;
    const absl::Span<const Box> boxes = of.list.Of(rank_);
    const auto holds = [&cell](const Box& box) {
      for (size_t d = 0; d < box.shape.size(); ++d) {
        const int64_t at = cell.box.offset[d] - box.offset[d];
        if (at < 0 || at >= box.shape[d]) return false;
      }
      return true;
    };
    const auto near = of.own_list->Find(cell.box);
    const auto at =
        std::find_if(near.begin(), near.end(), [&](size_t b) { return holds(boxes[b]); });
    SLUICE_CHECK(at != near.end(), "a cell that this rank has no box around");
    const Box& box = boxes[*at];
    part.view = static_cast<int>(*at);
    for (size_t d = 0; d < of.dims(); ++d) {
      const int64_t first = d < of.cut ? prefix[d] : of.SharedRange(cell, d, piece.box).first;
      part.local_begin[d] = first - box.offset[d];
    }
  }
  size_t next = 0;
  for (CheckpointPart& part : parts->parts) {
    for (size_t i = 0; i < static_cast<size_t>(part.dims); ++i) {
      part.runs[i] = absl::MakeConstSpan(parts->cut_runs).subspan(next++, 1);
    }
  }
}

bool CheckpointPlan::NextPiece(CheckpointPiece* piece) {
  while (!over()) {
    const Tensor& tensor = tensors_[tensor_];
    if (tensor.of->has_cells()) {
      if (own_ < static_cast<int64_t>(tensor.of->own_boxes.size())) {
        const int64_t box = tensor.of->own_boxes[static_cast<size_t>(own_++)];
        if (FillBoxPiece(tensor, box, piece)) return true;
        continue;
      }
      ++tensor_;
      own_ = 0;
      continue;
    }
    if (own_ == tensor.of->OwnBoxes()) {
      ++tensor_;
      own_ = 0;
      continue;
    }
    const int64_t box = tensor.of->OwnBox(own_++);
    const Choice choice = ChoiceOf(tensor, box);
    if (flow_ == CheckpointFlow::kSave && choice.replica != tensor.of->own_replica) continue;
    Place(tensor, box, piece);
    piece->file_rank = RankOf(tensor, box, choice.region, choice.replica);
    piece->alone = choice.members == 1;
    return true;
  }
  return false;
}

// Spans into `parts` are bound by Bind, when its memory has found its place.
void CheckpointPlan::AppendPart(const Tensor& tensor, int64_t box, int64_t region,
                                CheckpointParts* parts) const {
  const TensorClass& of = *tensor.of;
  CheckpointPart& part = parts->parts.emplace_back();
  part.first_dim = static_cast<int>(of.cut);
  part.dims = static_cast<int>(of.dims() - of.cut);
  part.elements = 1;
  for (size_t d = of.dims(); --d > of.cut;) {
    const int64_t count = static_cast<int64_t>(of.parts[d].size());
    const size_t number = static_cast<size_t>(region % count);
    region /= count;
    part.runs[d - of.cut] = of.runs[d][number];
    part.extent[d - of.cut] = of.parts[d][number].indices.size();
    part.box_size[d - of.cut] = of.shape[d];
    part.elements *= part.extent[d - of.cut];
  }
  const auto [begin, end] = of.RangeOf(box);
  const IntervalList& indices = of.CutParts(box)[static_cast<size_t>(region)].indices;
  const size_t before = parts->cut_runs.size();
  AppendRuns(indices, begin, flow_, &parts->cut_runs);
  part.runs[0] = absl::MakeConstSpan(static_cast<const Stretch*>(nullptr), 0);
  part.extent[0] = indices.size();
  part.box_size[0] = end - begin;
  part.elements *= part.extent[0];
  // How many there are; Bind says where.
  part.local_begin[of.cut] = static_cast<int64_t>(parts->cut_runs.size() - before);
}

void CheckpointPlan::Bind(const TensorClass& of, CheckpointParts* parts) const {
  size_t first = 0;
  for (CheckpointPart& part : parts->parts) {
    const size_t count = static_cast<size_t>(std::exchange(part.local_begin[of.cut], 0));
    part.runs[0] = absl::MakeConstSpan(parts->cut_runs).subspan(first, count);
    first += count;
  }
}

void CheckpointPlan::OwnPart(const CheckpointPiece& piece, CheckpointParts* own) const {
  const Tensor& tensor = tensors_[static_cast<size_t>(piece.tensor)];
  const TensorClass& of = *tensor.of;
  own->parts.clear();
  own->cut_runs.clear();
  if (of.has_cells()) {
    AppendCellParts(piece, /*own=*/true, own);
    return;
  }
  const std::vector<PartOverlap>& cut_parts = of.CutParts(piece.box);
  const auto mine = std::find_if(cut_parts.begin(), cut_parts.end(), [&](const PartOverlap& part) {
    return part.part == of.own_parts[of.cut];
  });
  SLUICE_CHECK(mine != cut_parts.end(), "a piece that this rank has no part in");
  AppendPart(tensor, piece.box, (mine - cut_parts.begin()) * of.inner_regions + of.own_inner, own);
  Bind(of, own);
  CheckpointPart& part = own->parts[0];
  const Indices prefix = of.PrefixOf(piece.box);
  for (size_t d = 0; d < of.cut; ++d) part.local_begin[d] = of.owned[d].PositionOf(prefix[d]);
  part.local_begin[of.cut] = of.owned[of.cut].PositionOf(mine->indices.intervals()[0].begin);
}

void CheckpointPlan::OtherParts(const CheckpointPiece& piece, CheckpointParts* others) const {
  const Tensor& tensor = tensors_[static_cast<size_t>(piece.tensor)];
  const TensorClass& of = *tensor.of;
  others->parts.clear();
  others->cut_runs.clear();
  if (of.has_cells()) {
    AppendCellParts(piece, /*own=*/false, others);
    return;
  }
  const Choice choice = ChoiceOf(tensor, piece.box);
  const int64_t regions = static_cast<int64_t>(of.CutParts(piece.box).size()) * of.inner_regions;
  const bool loads = flow_ == CheckpointFlow::kLoad;
  for (int64_t region = 0; region < regions; ++region) {
    if (region == choice.region && (!loads || of.partition.replicas() == 1)) continue;
    AppendPart(tensor, piece.box, region, others);
    std::vector<int>& ranks = others->parts.back().ranks;
    const int64_t first = loads ? 0 : choice.replica;
    const int64_t end = loads ? of.partition.replicas() : choice.replica + 1;
    for (int64_t replica = first; replica < end; ++replica) {
      if (region == choice.region && replica == choice.replica) continue;
      ranks.push_back(RankOf(tensor, piece.box, region, replica));
    }
  }
  Bind(of, others);
}

BucketId CheckpointPlan::IdOf(const CheckpointPiece& piece) {
  const uint64_t number = static_cast<uint64_t>(piece.number);
  return BucketId({.window = number >> kRoundBits,
                   .round = number & ((uint64_t{1} << kRoundBits) - 1),
                   .src = static_cast<uint64_t>(piece.file_rank)});
}

}  // namespace sluice
