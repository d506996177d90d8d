// The bytes of a half: format, layouts, kinds, sources, targets, renames, options.
#include "plan/connect/half_code.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plan/connect/byte_code.h"
#include "sluice/transfer.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();

// A value of an enumeration, of which there is none after `last`.
template <class Value>
bool TakeValue(ByteReader* in, Value last, Value* value) {
  return in->TakeUpTo(static_cast<uint64_t>(last), value);
}

// ---- Layouts.

void AddPlacement(const Placement& placement, ByteWriter* out) {
  out->Add(static_cast<uint64_t>(placement.kind));
  switch (placement.kind) {
    case Placement::Kind::kReplicate:
      break;
    case Placement::Kind::kShard:
      out->Add(static_cast<uint64_t>(placement.dim));
      break;
    case Placement::Kind::kStridedShard:
      out->Add(static_cast<uint64_t>(placement.dim));
      out->Add(static_cast<uint64_t>(placement.split_factor));
      break;
    case Placement::Kind::kPartial:
      out->Add(static_cast<uint64_t>(placement.op));
      break;
  }
}

bool TakePlacement(ByteReader* in, Placement* placement) {
  if (!TakeValue(in, kLastPlacement, &placement->kind)) return false;
  switch (placement->kind) {
    case Placement::Kind::kReplicate:
      return true;
    case Placement::Kind::kShard:
      return in->TakeUpTo(kMaxTensorDims, &placement->dim);
    case Placement::Kind::kStridedShard:
      return in->TakeUpTo(kMaxTensorDims, &placement->dim) &&
             in->TakeUpTo(kLargest, &placement->split_factor);
    case Placement::Kind::kPartial:
      return TakeValue(in, kLastOp, &placement->op);
  }
  return false;
}

// Runs of ranks that follow one another: where each begins after the end of the last, and its
// length.
void AddRanks(absl::Span<const int> ranks, ByteWriter* out) {
  int64_t last = 0;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    out->AddSigned(ranks[i] - last);
    out->Add(end - i);
    last = ranks[end - 1];
    i = end;
  }
}

bool TakeRanks(ByteReader* in, size_t count, int ranks, std::vector<int>* out) {
  int64_t last = 0;
  while (out->size() < count) {
    int64_t step = 0;
    size_t length = 0;
    if (!in->TakeSigned(&step) || !in->TakeUpTo(count - out->size(), &length)) return false;
    if (step < -last || step >= ranks - last) return false;
    const int64_t first = last + step;
    if (length == 0 || static_cast<int64_t>(length) > ranks - first) return false;
    last = first + static_cast<int64_t>(length) - 1;
    for (int64_t rank = first; rank <= last; ++rank) out->push_back(static_cast<int>(rank));
  }
  return true;
}

// In place of the number of mesh dimensions.
constexpr uint64_t kHasBoxes = kMeshDimsMax + 1;

// Boxes of a list are much like those before them.
void AddBoxes(const BoxList& list, ByteWriter* out) {
  out->Add(list.ranks().size());
  int64_t last_rank = 0;
  for (const RankBoxes& of : list.ranks()) {
    out->AddSigned(of.rank - last_rank);
    last_rank = of.rank;
    const size_t dims = of.boxes[0].shape.size();
    out->Add(of.boxes.size());
    out->Add(dims);
    const Box none = {std::vector<int64_t>(dims, 0), std::vector<int64_t>(dims, 0)};
    const Box* last = &none;
    for (const Box& box : of.boxes) {
      for (size_t d = 0; d < dims; ++d) {
        out->AddSigned(box.offset[d] - last->offset[d]);
        out->AddSigned(box.shape[d] - last->shape[d]);
      }
      last = &box;
    }
  }
}

void AddLayout(const Layout& layout, ByteWriter* out) {
  if (!layout.boxes.empty()) {
    out->Add(kHasBoxes);
    AddBoxes(layout.boxes, out);
    return;
  }
  out->Add(layout.mesh.sizes().size());
  for (const int64_t size : layout.mesh.sizes()) out->Add(static_cast<uint64_t>(size));
  AddRanks(layout.mesh.ranks(), out);
  for (const Placement& placement : layout.placements) AddPlacement(placement, out);
  out->Add(IsLeftToRight(layout) ? 0 : 1);
  if (IsLeftToRight(layout)) return;
  for (const int dim : layout.order) out->Add(static_cast<uint64_t>(dim));
}

absl::Status NoHalf(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("these are no bytes of a half: ", why));
}

absl::Status TakeRoom(size_t count, int64_t most, absl::string_view what, int64_t* left) {
  *left -= static_cast<int64_t>(count);
  if (*left >= 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("what the ranks give has more than ", most, " ", what));
}

// A number that differs by so much from the one before.
bool TakeStep(ByteReader* in, int64_t before, int64_t* number) {
  int64_t step = 0;
  return in->TakeSigned(&step) && !__builtin_add_overflow(before, step, number) && *number >= 0;
}

// Reads one rank's boxes, as a half has them.
absl::Status TakeBoxes(ByteReader* in, HalfRoom* room, BoxList* list) {
  size_t ranks = 0, count = 0, dims = 0;
  int64_t rank = 0;
  if (!in->TakeUpTo(1, &ranks) || ranks != 1 || !in->TakeSigned(&rank) || rank != kHalfBoxesRank ||
      !in->TakeCount(&count) || !in->TakeUpTo(kMaxTensorDims, &dims)) {
    return NoHalf("boxes");
  }
  SLUICE_RETURN_IF_ERROR(TakeRoom(count, kHalfBoxesMax, "boxes in distinct layouts", &room->boxes));
  RankBoxes of = {kHalfBoxesRank, {}};
  of.boxes.reserve(count);
  Box box = {std::vector<int64_t>(dims, 0), std::vector<int64_t>(dims, 0)};
  while (of.boxes.size() < count) {
    for (size_t d = 0; d < dims; ++d) {
      if (!TakeStep(in, box.offset[d], &box.offset[d]) ||
          !TakeStep(in, box.shape[d], &box.shape[d])) {
        return NoHalf("a box");
      }
    }
    of.boxes.push_back(box);
  }
  std::vector<RankBoxes> lists;
  lists.push_back(std::move(of));
  SLUICE_ASSIGN_OR_RETURN(*list, BoxList::Create(std::move(lists)));
  return absl::OkStatus();
}

absl::Status TakeLayout(ByteReader* in, int ranks, HalfRoom* room, Layout* layout) {
  size_t dims = 0;
  if (!in->TakeUpTo(kHasBoxes, &dims)) return NoHalf("a layout");
  if (dims == kHasBoxes) return TakeBoxes(in, room, &layout->boxes);
  std::vector<int64_t> sizes(dims);
  int64_t count = 1;
  for (int64_t& size : sizes) {
    if (!in->TakeUpTo(static_cast<uint64_t>(ranks), &size)) return NoHalf("a mesh");
    if (__builtin_mul_overflow(count, size, &count) || count > ranks) return NoHalf("a mesh");
  }
  SLUICE_RETURN_IF_ERROR(TakeRoom(static_cast<size_t>(count), kHalfMeshRanksMax,
                                  "ranks of distinct meshes", &room->mesh_ranks));
  std::vector<int> members;
  if (!TakeRanks(in, static_cast<size_t>(count), ranks, &members)) return NoHalf("ranks");
  SLUICE_ASSIGN_OR_RETURN(layout->mesh, Mesh::Create(std::move(sizes), std::move(members)));
  layout->placements.resize(dims);
  for (Placement& placement : layout->placements) {
    if (!TakePlacement(in, &placement)) return NoHalf("a placement");
  }
  size_t has_order = 0;
  if (!in->TakeUpTo(1, &has_order)) return NoHalf("an order");
  layout->order.resize(has_order == 0 ? 0 : dims);
  for (int& dim : layout->order) {
    if (!in->TakeUpTo(dims - 1, &dim)) return NoHalf("an order");
  }
  return absl::OkStatus();
}

// ---- Kinds.

void AddKind(const TensorKind& kind, ByteWriter* out) {
  out->Add(kind.shape.size());
  for (const int64_t size : kind.shape) out->Add(static_cast<uint64_t>(size));
  out->Add(static_cast<uint64_t>(kind.dtype));
  out->Add(static_cast<uint64_t>(kind.layout));
}

bool TakeKind(ByteReader* in, size_t layouts, TensorKind* kind) {
  size_t dims = 0;
  if (!in->TakeUpTo(kMaxTensorDims, &dims)) return false;
  kind->shape.resize(dims);
  for (int64_t& size : kind->shape) {
    if (!in->TakeUpTo(kLargest, &size)) return false;
  }
  return TakeValue(in, kLastDType, &kind->dtype) && layouts > 0 &&
         in->TakeUpTo(layouts - 1, &kind->layout);
}

// ---- Names: what the one before has at its begin and end is not said again.

class NameWriter {
 public:
  void Add(absl::string_view name, ByteWriter* out) {
    const size_t most = std::min(name.size(), last_.size());
    const size_t begin = static_cast<size_t>(
        std::mismatch(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(most), last_.begin())
            .first -
        name.begin());
    size_t end = 0;
    while (begin + end < most && name[name.size() - 1 - end] == last_[last_.size() - 1 - end]) {
      ++end;
    }
    out->Add(begin);
    out->Add(end);
    out->AddText(name.substr(begin, name.size() - begin - end));
    last_ = name;
  }

 private:
  absl::string_view last_;
};

class NameReader {
 public:
  explicit NameReader(HalfRoom* room) : room_(room) {}

  absl::Status Take(ByteReader* in, std::string* name) {
    size_t begin = 0, end = 0;
    absl::string_view middle;
    if (!in->TakeUpTo(last_.size(), &begin) || !in->TakeUpTo(last_.size() - begin, &end) ||
        !in->TakeText(kTensorNameBytesMax, &middle)) {
      return NoHalf("a name");
    }
    if (begin + middle.size() + end > kTensorNameBytesMax) return NoHalf("a name that is too long");
    *name = absl::StrCat(last_.substr(0, begin), middle, last_.substr(last_.size() - end));
    last_ = *name;
    return TakeRoom(name->size(), kHalfNamesBytesMax, "bytes of names", &room_->names_bytes);
  }

 private:
  HalfRoom* const room_;
  std::string last_;
};

// ---- Tensors.

void AddTensors(const std::vector<HalfTensor>& tensors, ByteWriter* out) {
  out->Add(tensors.size());
  NameWriter names;
  for (const HalfTensor& tensor : tensors) {
    names.Add(tensor.name, out);
    out->Add(static_cast<uint64_t>(tensor.kind));
    out->Add(tensor.window ? static_cast<uint64_t>(*tensor.window) + 1 : 0);
  }
}

absl::Status TakeTensorCount(ByteReader* in, HalfRoom* room, size_t* count) {
  if (!in->TakeCount(count)) return NoHalf("a number of tensors");
  return TakeRoom(*count, kHalfTensorsMax, "tensors and renames", &room->tensors);
}

absl::Status TakeTensors(ByteReader* in, size_t kinds, HalfRoom* room,
                         std::vector<HalfTensor>* tensors) {
  size_t count = 0;
  SLUICE_RETURN_IF_ERROR(TakeTensorCount(in, room, &count));
  tensors->resize(count);
  NameReader names(room);
  for (HalfTensor& tensor : *tensors) {
    SLUICE_RETURN_IF_ERROR(names.Take(in, &tensor.name));
    int window = 0;
    if (kinds == 0 || !in->TakeUpTo(kinds - 1, &tensor.kind) ||
        !in->TakeUpTo(kMaxWindow + 1, &window)) {
      return NoHalf("a tensor");
    }
    if (window > 0) tensor.window = window - 1;
  }
  return absl::OkStatus();
}

absl::Status TakeRenames(ByteReader* in, HalfRoom* room, Half* half) {
  size_t count = 0;
  SLUICE_RETURN_IF_ERROR(TakeTensorCount(in, room, &count));
  half->renames.resize(count);
  NameReader targets(room), sources(room);
  for (auto& [target, source] : half->renames) {
    SLUICE_RETURN_IF_ERROR(targets.Take(in, &target));
    SLUICE_RETURN_IF_ERROR(sources.Take(in, &source));
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeLayout(const Layout& layout) {
  ByteWriter out;
  AddLayout(layout, &out);
  return out.Take();
}

std::string EncodeHalf(const Half& half) {
  ByteWriter out;
  out.Add(kHalfFormat);
  out.Add(half.layouts.size());
  for (const Layout& layout : half.layouts) AddLayout(layout, &out);
  out.Add(half.kinds.size());
  for (const TensorKind& kind : half.kinds) AddKind(kind, &out);
  AddTensors(half.sources, &out);
  AddTensors(half.targets, &out);
  out.Add(half.renames.size());
  NameWriter targets, sources;
  for (const auto& [target, source] : half.renames) {
    targets.Add(target, &out);
    sources.Add(source, &out);
  }
  out.Add(half.ignore_unused_sources ? 1 : 0);
  out.Add(half.priority_class ? static_cast<uint64_t>(*half.priority_class) + 1 : 0);
  return out.Take();
}

absl::StatusOr<Half> DecodeHalf(absl::string_view bytes, int ranks, HalfRoom* room) {
  ByteReader in(bytes);
  Half half;
  uint64_t format = 0;
  if (!in.Take(&format) || format != kHalfFormat) return NoHalf("another format");
  size_t count = 0;
  if (!in.TakeCount(&count)) return NoHalf("a number of layouts");
  while (half.layouts.size() < count) {
    Layout& layout = half.layouts.emplace_back();
    SLUICE_RETURN_IF_ERROR(TakeLayout(&in, ranks, room, &layout));
  }
  if (!in.TakeCount(&count)) return NoHalf("a number of kinds");
  SLUICE_RETURN_IF_ERROR(TakeRoom(count, kHalfKindsMax, "kinds of tensors", &room->kinds));
  while (half.kinds.size() < count) {
    if (!TakeKind(&in, half.layouts.size(), &half.kinds.emplace_back())) return NoHalf("a kind");
  }
  const size_t kinds = half.kinds.size();
  SLUICE_RETURN_IF_ERROR(TakeTensors(&in, kinds, room, &half.sources));
  SLUICE_RETURN_IF_ERROR(TakeTensors(&in, kinds, room, &half.targets));
  SLUICE_RETURN_IF_ERROR(TakeRenames(&in, room, &half));
  int priority_class = 0;
  if (!in.TakeUpTo(1, &half.ignore_unused_sources) ||
      !in.TakeUpTo(kPriorityClasses, &priority_class)) {
    return NoHalf("options");
  }
  if (priority_class > 0) half.priority_class = priority_class - 1;
  if (!in.empty()) return NoHalf("bytes after its end");
  return half;
}

}  // namespace sluice
