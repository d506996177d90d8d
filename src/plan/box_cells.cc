// Cutting at the edges of source boxes, once for each target box.
#include "plan/box_cells.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "mesh/box_index.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// A box, and the ranks that hold exactly this one.
struct HeldBox {
  const Box* box;
  std::vector<int> ranks;
};

struct BoxBefore {
  bool operator()(const Box* a, const Box* b) const {
    return std::tie(a->offset, a->shape) < std::tie(b->offset, b->shape);
  }
};

// In the order of their places.
std::vector<HeldBox> DistinctBoxes(const BoxList& list) {
  std::map<const Box*, std::vector<int>, BoxBefore> found;
  for (const RankBoxes& of : list.ranks()) {
    for (const Box& box : of.boxes) found[&box].push_back(of.rank);
  }
  std::vector<HeldBox> boxes;
  boxes.reserve(found.size());
  for (auto& [box, ranks] : found) boxes.push_back({box, std::move(ranks)});
  return boxes;
}

enum class Meeting : uint8_t { kNothing, kPart, kAll };

// How much of `cell` the box has.
Meeting Meet(const Box& box, const Box& cell) {
  Meeting meeting = Meeting::kAll;
  for (size_t d = 0; d < cell.shape.size(); ++d) {
    const int64_t begin = box.offset[d] - cell.offset[d];
    const int64_t end = begin + box.shape[d];
    if (end <= 0 || begin >= cell.shape[d]) return Meeting::kNothing;
    if (begin > 0 || end < cell.shape[d]) meeting = Meeting::kPart;
  }
  return meeting;
}

// A place to cut a cell: between edges of boxes, along the dimension that has most.
struct CutPlace {
  size_t dim = 0;
  int64_t at = 0;  // in the cell
};

CutPlace ChoosePlace(const Box& cell, absl::Span<const HeldBox* const> boxes) {
  CutPlace place;
  size_t most = 0;
  for (size_t d = 0; d < cell.shape.size(); ++d) {
    std::vector<int64_t> edges;
    for (const HeldBox* held : boxes) {
      const int64_t begin = held->box->offset[d] - cell.offset[d];
      for (const int64_t edge : {begin, begin + held->box->shape[d]}) {
        if (edge > 0 && edge < cell.shape[d]) edges.push_back(edge);
      }
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    if (edges.size() <= most) continue;
    most = edges.size();
    place = {d, edges[edges.size() / 2]};
  }
  return place;
}

std::pair<Box, Box> CutAt(const Box& cell, const CutPlace& place) {
  std::pair<Box, Box> halves = {cell, cell};
  halves.first.shape[place.dim] = place.at;
  halves.second.offset[place.dim] += place.at;
  halves.second.shape[place.dim] -= place.at;
  return halves;
}

// Layouts of ranks that all hold the same.
class Replicas {
 public:
  Layout Of(std::vector<int> ranks) {
    const auto count = static_cast<int64_t>(ranks.size());
    Mesh& mesh = meshes_[ranks];
    if (mesh.ranks().empty()) mesh = Mesh::Create({count}, std::move(ranks)).value();
    return {.mesh = mesh, .placements = {Placement::Replicate()}};
  }

 private:
  absl::flat_hash_map<std::vector<int>, Mesh> meshes_;
};

// One tensor after the other.
class Cutter {
 public:
  explicit Cutter(CellSpec* out) : out_(*out) {}

  absl::Status Add(int32_t number, const TensorTransfer& tensor) {
    number_ = number;
    tensor_ = &tensor;
    if (tensor.src.boxes.empty() && tensor.dst.boxes.empty()) {
      out_.spec.tensors.push_back(tensor);
      out_.cells.push_back({number, {}});
      return absl::OkStatus();
    }
    const std::vector<HeldBox> sources = DistinctBoxes(tensor.src.boxes);
    std::vector<const HeldBox*> all;
    all.reserve(sources.size());
    for (const HeldBox& source : sources) all.push_back(&source);
    if (tensor.dst.boxes.empty()) {
      const Box whole = {std::vector<int64_t>(tensor.shape.size(), 0), tensor.shape};
      dst_ranks_ = nullptr;
      return AddRegion(whole, all);
    }
    std::vector<const Box*> boxes;
    boxes.reserve(sources.size());
    for (const HeldBox& source : sources) boxes.push_back(source.box);
    const BoxIndex index(boxes);
    for (const HeldBox& target : DistinctBoxes(tensor.dst.boxes)) {
      dst_ranks_ = &target.ranks;
      all.clear();
      for (const size_t near : index.Find(*target.box)) all.push_back(&sources[near]);
      SLUICE_RETURN_IF_ERROR(AddRegion(*target.box, all));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status AddRegion(const Box& region, absl::Span<const HeldBox* const> sources) {
    if (std::find(region.shape.begin(), region.shape.end(), 0) != region.shape.end()) {
      return absl::OkStatus();  // of a tensor without elements
    }
    if (tensor_->src.boxes.empty()) return AddCell(region, Sliced(tensor_->src, region));
    return AddHeld(region, sources);
  }

  // Cuts `region` until each of the boxes has all of a cell or nothing.
  absl::Status AddHeld(const Box& region, absl::Span<const HeldBox* const> sources) {
    std::vector<const HeldBox*> met;
    bool in_part = false;
    for (const HeldBox* source : sources) {
      const Meeting meeting = Meet(*source->box, region);
      if (meeting == Meeting::kNothing) continue;
      met.push_back(source);
      in_part |= meeting == Meeting::kPart;
    }
    if (met.empty()) return NobodyHolds(region);
    if (in_part) {
      const auto [first, second] = CutAt(region, ChoosePlace(region, met));
      SLUICE_RETURN_IF_ERROR(AddHeld(first, met));
      return AddHeld(second, met);
    }
    std::vector<int> ranks;
    for (const HeldBox* source : met) {
      ranks.insert(ranks.end(), source->ranks.begin(), source->ranks.end());
    }
    std::sort(ranks.begin(), ranks.end());
    return AddCell(region, replicas_.Of(std::move(ranks)));
  }

  absl::Status AddCell(const Box& region, Layout src) {
    if (static_cast<int64_t>(out_.cells.size()) >= CellSpec::kCellsMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat("boxes cut the tensors into more than ", CellSpec::kCellsMax, " parts"));
    }
    TensorTransfer& cell = out_.spec.tensors.emplace_back();
    cell.shape = region.shape;
    cell.src_dtype = tensor_->src_dtype;
    cell.dst_dtype = tensor_->dst_dtype;
    cell.src = std::move(src);
    cell.dst = dst_ranks_ == nullptr ? Sliced(tensor_->dst, region) : replicas_.Of(*dst_ranks_);
    cell.window = tensor_->window;
    out_.cells.push_back({number_, region.offset});
    return absl::OkStatus();
  }

  // The layout of a region of the tensor that `layout` is of.
  Layout Sliced(const Layout& layout, const Box& region) const {
    Layout slice = layout;
    if (slice.whole.empty()) {
      slice.whole = tensor_->shape;
      slice.offset = region.offset;
      return slice;
    }
    for (size_t d = 0; d < region.offset.size(); ++d) slice.offset[d] += region.offset[d];
    return slice;
  }

  absl::Status NobodyHolds(const Box& region) const {
    const int rank = dst_ranks_ == nullptr ? tensor_->dst.mesh.ranks()[0] : dst_ranks_->front();
    return MakeError(
        absl::StatusCode::kInvalidArgument, "source: no rank holds the elements [",
        absl::StrJoin(region.shape, ","), "] at [", absl::StrJoin(region.offset, ","), "]",
        dst_ranks_ == nullptr ? ErrorText() : ErrorText(", which ", RankInWords(rank), " needs"));
  }

  CellSpec& out_;
  Replicas replicas_;
  int32_t number_ = 0;
  const TensorTransfer* tensor_ = nullptr;
  const std::vector<int>* dst_ranks_ = nullptr;  // of the target box; null: placements
};

// Growing by and by would hold all cells twice. The first tensors tell how many there will be.
void ReserveFor(const TransferSpec& spec, size_t cut, CellSpec* out) {
  const auto each = static_cast<double>(out->cells.size()) / static_cast<double>(cut);
  const double all = 1.05 * each * static_cast<double>(spec.tensors.size());
  const auto most = static_cast<double>(CellSpec::kCellsMax);
  out->cells.reserve(static_cast<size_t>(std::min(all, most)));
  out->spec.tensors.reserve(out->cells.capacity());
}

}  // namespace

bool HasBoxes(const TransferSpec& spec) {
  return std::any_of(spec.tensors.begin(), spec.tensors.end(), [](const TensorTransfer& tensor) {
    return !tensor.src.boxes.empty() || !tensor.dst.boxes.empty();
  });
}

absl::StatusOr<CellSpec> CutIntoCells(const TransferSpec& spec) {
  constexpr size_t kTellingTensors = 256;
  CellSpec out;
  out.spec.priority_class = spec.priority_class;
  Cutter cutter(&out);
  for (size_t t = 0; t < spec.tensors.size(); ++t) {
    if (t == kTellingTensors) ReserveFor(spec, t, &out);
    const absl::Status status = cutter.Add(static_cast<int32_t>(t), spec.tensors[t]);
    if (status.ok()) continue;
    return Annotate(status, TensorInWords(t, spec.tensors[t].name));
  }
  return out;
}

}  // namespace sluice
