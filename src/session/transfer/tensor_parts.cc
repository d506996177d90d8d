// Places of cells in boxes and in local tensors.
#include "session/transfer/tensor_parts.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

bool HasElements(const ViewNeed& need) {
  return std::find(need.shape.begin(), need.shape.end(), 0) == need.shape.end();
}

bool Contains(const Box& box, absl::Span<const int64_t> offset, absl::Span<const int64_t> shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (offset[d] < box.offset[d] || offset[d] + shape[d] > box.offset[d] + box.shape[d]) {
      return false;
    }
  }
  return true;
}

// How many of a rank's indices along a dimension lie before `end`.
int64_t CountBefore(absl::Span<const IndexRange> ranges, int64_t end) {
  int64_t count = 0;
  for (const IndexRange& range : ranges) {
    if (range.begin >= end) break;
    count += std::min(range.end, end) - range.begin;
  }
  return count;
}

}  // namespace

absl::StatusOr<TensorParts::Side> TensorParts::SideOf(const Layout& layout,
                                                      absl::Span<const int64_t> shape, DType dtype,
                                                      int rank) {
  Side side;
  side.has_boxes = !layout.boxes.empty();
  if (side.has_boxes) {
    for (const Box& box : layout.boxes.Of(rank)) side.views.push_back({box.shape, dtype});
    return side;
  }
  SLUICE_ASSIGN_OR_RETURN(std::vector<int64_t> local, LocalShape(layout, shape, rank));
  side.views.push_back({std::move(local), dtype});
  return side;
}

TensorParts::Place TensorParts::PlaceOf(const Layout& layout, const Own& own, const BoxCell& cell,
                                        const Layout& of_cell, absl::Span<const int64_t> cell_shape,
                                        int rank) {
  Place place;
  if (!layout.boxes.empty()) {
    // The ranks that the plan lets hold the cell are those with a box around it.
    if (!of_cell.mesh.PositionOf(rank)) return place;
    const absl::Span<const Box> boxes = layout.boxes.Of(rank);
    const Box of = {cell.offset, {cell_shape.begin(), cell_shape.end()}};
    for (const size_t b : own.boxes.Find(of)) {
      if (!Contains(boxes[b], cell.offset, cell_shape)) continue;
      place.view = static_cast<int>(b);
      place.shape.assign(cell_shape.begin(), cell_shape.end());
      for (size_t d = 0; d < cell_shape.size(); ++d) {
        place.begin.push_back(cell.offset[d] - boxes[b].offset[d]);
      }
      break;
    }
    return place;
  }
  // A rank has nothing of most cells.
  for (size_t d = 0; d < cell_shape.size(); ++d) {
    const int64_t end = cell.offset[d] + cell_shape[d];
    if (CountBefore(own.indices[d], cell.offset[d]) == CountBefore(own.indices[d], end))
      return place;
  }
  place.view = 0;
  for (size_t d = 0; d < cell_shape.size(); ++d) {
    const int64_t begin = CountBefore(own.indices[d], cell.offset[d]);
    place.begin.push_back(begin);
    place.shape.push_back(CountBefore(own.indices[d], cell.offset[d] + cell_shape[d]) - begin);
  }
  return place;
}

absl::StatusOr<TensorParts> TensorParts::Make(const TransferSpec& spec, const CellSpec* cells,
                                              int rank) {
  TensorParts made;
  for (const TensorTransfer& tensor : spec.tensors) {
    auto src = SideOf(tensor.src, tensor.shape, tensor.src_dtype, rank);
    if (!src.ok()) return src.status();
    auto dst = SideOf(tensor.dst, tensor.shape, tensor.dst_dtype, rank);
    if (!dst.ok()) return dst.status();
    const bool is_cut = src->has_boxes || dst->has_boxes;
    const auto number = static_cast<int>(made.is_cut_.size());
    made.is_cut_.push_back(is_cut);
    if (is_cut || HasElements(src->views[0])) made.held_.first.push_back(number);
    if (is_cut || HasElements(dst->views[0])) made.held_.second.push_back(number);
    made.sides_.emplace_back(*std::move(src), *std::move(dst));
  }
  if (cells != nullptr) {
    if (absl::Status status = made.AddCells(spec, *cells, rank); !status.ok()) return status;
    return made;
  }
  for (size_t t = 0; t < spec.tensors.size(); ++t) {
    made.first_part_.push_back(t);
    made.tensor_of_.push_back(static_cast<int>(t));
  }
  made.first_part_.push_back(spec.tensors.size());
  return made;
}

absl::StatusOr<TensorParts::Own> TensorParts::OwnOf(const Layout& layout,
                                                    absl::Span<const int64_t> shape, int rank) {
  std::vector<const Box*> boxes;
  for (const Box& box : layout.boxes.Of(rank)) boxes.push_back(&box);
  Own own = {{}, BoxIndex(boxes)};
  if (!layout.boxes.empty()) return own;
  auto indices = OwnedRanges(layout, shape, rank);
  if (!indices.ok()) return indices.status();
  own.indices = *std::move(indices);
  return own;
}

absl::Status TensorParts::AddCells(const TransferSpec& spec, const CellSpec& cells, int rank) {
  const size_t parts = cells.cells.size();
  places_.resize(parts);
  size_t part = 0;
  for (size_t t = 0; t < spec.tensors.size(); ++t) {
    const TensorTransfer& tensor = spec.tensors[t];
    first_part_.push_back(part);
    if (!is_cut_[t]) {
      tensor_of_.push_back(static_cast<int>(t));
      ++part;
      continue;
    }
    const auto src = OwnOf(tensor.src, tensor.shape, rank);
    if (!src.ok()) return src.status();
    const auto dst = OwnOf(tensor.dst, tensor.shape, rank);
    if (!dst.ok()) return dst.status();
    for (; part < parts && cells.cells[part].tensor == static_cast<int32_t>(t); ++part) {
      tensor_of_.push_back(static_cast<int>(t));
      const TensorTransfer& of_cell = cells.spec.tensors[part];
      const BoxCell& cell = cells.cells[part];
      places_[part] = {PlaceOf(tensor.src, *src, cell, of_cell.src, of_cell.shape, rank),
                       PlaceOf(tensor.dst, *dst, cell, of_cell.dst, of_cell.shape, rank)};
    }
  }
  first_part_.push_back(part);
  return absl::OkStatus();
}

bool TensorParts::Holds(size_t part, bool is_dst) const {
  const auto tensor = static_cast<size_t>(tensor_of_[part]);
  if (is_cut_[tensor]) return PlaceAt(part, is_dst).view >= 0;
  return HasElements(SideAt(tensor, is_dst).views[0]);
}

bool TensorParts::IsNull(size_t tensor, const TensorView& view) const {
  if (!SideAt(tensor, /*is_dst=*/true).has_boxes) return view.data == nullptr;
  return std::all_of(view.boxes.begin(), view.boxes.end(),
                     [](const TensorView& box) { return box.data == nullptr; });
}

absl::Status TensorParts::Bind(size_t tensor, bool is_dst, const TensorView& view,
                               const MemoryRules& rules, absl::Span<BoundView> parts) const {
  const Side& side = SideAt(tensor, is_dst);
  if (!is_cut_[tensor]) return BindView(view, side.views[0], rules, is_dst, &parts[0]);
  if (side.has_boxes && view.boxes.size() != side.views.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "views of ", view.boxes.size(), " boxes, but this rank has ", side.views.size()));
  }
  absl::InlinedVector<BoundView, 4> bound(side.views.size());
  for (size_t v = 0; v < bound.size(); ++v) {
    const TensorView& given = side.has_boxes ? view.boxes[v] : view;
    absl::Status status = BindView(given, side.views[v], rules, is_dst, &bound[v]);
    if (status.ok()) continue;
    if (!side.has_boxes) return status;
    return MakeError(status.code(), "box ", v, ": ", status);
  }
  const size_t first = FirstPart(tensor);
  for (size_t part = first; part < EndPart(tensor); ++part) {
    const Place& place = PlaceAt(part, is_dst);
    BoundView& of_part = parts[part - first];
    of_part = BoundView();
    if (place.view < 0) continue;
    of_part = bound[static_cast<size_t>(place.view)];
    for (size_t d = 0; d < place.shape.size(); ++d) {
      of_part.base += place.begin[d] * of_part.stride_bytes[d];
      of_part.shape[d] = place.shape[d];
    }
  }
  return absl::OkStatus();
}

bool TensorParts::IsBound(size_t tensor, bool is_dst, const TensorView& view,
                          const MemoryRules& rules, absl::Span<const BoundView> parts) const {
  if (!is_cut_[tensor]) return IsBoundTo(view, SideAt(tensor, is_dst).views[0], parts[0]);
  absl::InlinedVector<BoundView, 4> now(parts.size());
  return Bind(tensor, is_dst, view, rules, absl::MakeSpan(now)).ok() &&
         std::equal(now.begin(), now.end(), parts.begin());
}

}  // namespace sluice
