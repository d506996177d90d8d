// Slices layouts and views of tensors as the arrays of a catalog cut them.
#include "session/checkpoint/given_catalog.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "session/checkpoint/checkpoint_fit.h"
#include "session/checkpoint/checkpoint_input.h"
#include "storage/object_name.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

using Numbers = std::vector<int64_t>;

// No file has more bytes.
constexpr int64_t kFileBytesMax = int64_t{1} << 62;

absl::Status Wrong(const CheckpointEntry& entry, const std::string& what) {
  return MakeError(absl::StatusCode::kInvalidArgument, "catalog: ", TensorInWords(entry.tensor),
                   " in file ", QuotedName(entry.file), ": ", what);
}

// -1: more than a file has.
int64_t ProductOf(absl::Span<const int64_t> sizes, int64_t product) {
  for (const int64_t size : sizes) {
    if (size == 0) return 0;
  }
  for (const int64_t size : sizes) {
    if (product > kFileBytesMax / size) return -1;
    product *= size;
  }
  return product;
}

// The dimensions from the outermost to the innermost; nothing if strides leave gaps or meet.
std::optional<std::vector<size_t>> DimensionOrder(const CheckpointEntry& entry) {
  std::vector<size_t> order(entry.shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (entry.strides.empty()) return order;
  // Strides of single positions say nothing.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (entry.shape[a] == 1 || entry.shape[b] == 1)
      return entry.shape[a] == 1 && entry.shape[b] > 1;
    return entry.strides[a] > entry.strides[b];
  });
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t size = entry.shape[order[i]];
    if (size != 1 && entry.strides[order[i]] != stride) return std::nullopt;
    stride *= size;
  }
  return order;
}

absl::Status CheckEntry(const CheckpointEntry& entry) {
  if (entry.tensor.empty()) return Wrong(entry, "a tensor without a name");
  SLUICE_RETURN_IF_ERROR(CheckObjectName(entry.file));
  const size_t dims = entry.shape.size();
  if (dims > size_t{kMaxTensorDims}) {
    return Wrong(entry, absl::StrCat(dims, " dimensions, and ", kMaxTensorDims, " are the most"));
  }
  if (!entry.offset.empty() && entry.offset.size() != dims) {
    return Wrong(entry, absl::StrCat("offset has ", entry.offset.size(), " numbers for ", dims,
                                     " dimensions"));
  }
  if (!entry.strides.empty() && entry.strides.size() != dims) {
    return Wrong(entry, absl::StrCat("strides has ", entry.strides.size(), " numbers for ", dims,
                                     " dimensions"));
  }
  for (size_t d = 0; d < dims; ++d) {
    const int64_t offset = entry.offset.empty() ? 0 : entry.offset[d];
    if (entry.shape[d] < 0 || offset < 0 || offset > kFileBytesMax - entry.shape[d]) {
      return Wrong(entry, absl::StrCat("shape ", ShapeText(entry.shape), " at offset ",
                                       ShapeText(entry.offset), " is no part of a tensor"));
    }
  }
  const int64_t bytes = ProductOf(entry.shape, DTypeBytes(entry.dtype));
  if (bytes != entry.bytes) {
    return Wrong(entry,
                 absl::StrCat("it has ", entry.bytes, " bytes, and shape ", ShapeText(entry.shape),
                              " of ", DTypeName(entry.dtype), " takes ",
                              bytes < 0 ? "more than a file has" : absl::StrCat(bytes)));
  }
  if (entry.begin < 0 || entry.begin > kFileBytesMax - bytes) {
    return Wrong(entry, absl::StrCat("it begins at byte ", entry.begin));
  }
  if (bytes > 0 && !DimensionOrder(entry)) {
    return Wrong(entry, absl::StrCat("strides ", ShapeText(entry.strides), " of shape ",
                                     ShapeText(entry.shape),
                                     " leave gaps or meet; an array has its dimensions in any "
                                     "order, one element after the other"));
  }
  return absl::OkStatus();
}

Numbers OffsetOf(const CheckpointEntry& entry) {
  return entry.offset.empty() ? Numbers(entry.shape.size(), 0) : entry.offset;
}

// The arrays of one tensor, and the shape that they have together.
struct Stored {
  std::vector<const CheckpointEntry*> arrays;
  Numbers shape;
};

// Each element of the whole is in one array.
absl::Status CheckWhole(const Stored& stored) {
  const CheckpointEntry& first = *stored.arrays.front();
  int64_t bytes = 0;
  std::vector<Box> boxes;
  for (const CheckpointEntry* const entry : stored.arrays) {
    if (entry->bytes == 0) continue;
    bytes = entry->bytes > kFileBytesMax - bytes ? kFileBytesMax : bytes + entry->bytes;
    boxes.push_back({OffsetOf(*entry), entry->shape});
  }
  const int64_t whole = ProductOf(stored.shape, DTypeBytes(first.dtype));
  if (bytes != whole) {
    return Wrong(first,
                 absl::StrCat("its ", stored.arrays.size(), " arrays have ", bytes,
                              " bytes, and a tensor of shape ", ShapeText(stored.shape),
                              whole < 0 ? " has more than a file" : absl::StrCat(" has ", whole)));
  }
  // No dimensions: one element, and one array of it, as the bytes have told.
  if (boxes.size() < 2 || stored.shape.empty()) return absl::OkStatus();
  const absl::StatusOr<BoxList> list = BoxList::Create({{0, std::move(boxes)}});
  if (list.ok()) return absl::OkStatus();
  return MakeError(list.status().code(), "catalog: arrays of ", TensorInWords(first.tensor), ": ",
                   list.status());
}

using StoredByName = absl::btree_map<absl::string_view, Stored>;

absl::StatusOr<StoredByName> CheckedByName(absl::Span<const CheckpointEntry> catalog) {
  StoredByName found;
  for (const CheckpointEntry& entry : catalog) {
    SLUICE_RETURN_IF_ERROR(CheckEntry(entry));
    Stored& stored = found[entry.tensor];
    if (stored.arrays.empty()) stored.shape.assign(entry.shape.size(), 0);
    if (stored.shape.size() != entry.shape.size() ||
        (!stored.arrays.empty() && stored.arrays.front()->dtype != entry.dtype)) {
      return Wrong(entry, "another array of the tensor has another dtype or number of dimensions");
    }
    stored.arrays.push_back(&entry);
    const Numbers offset = OffsetOf(entry);
    for (size_t d = 0; d < offset.size(); ++d) {
      stored.shape[d] = std::max(stored.shape[d], offset[d] + entry.shape[d]);
    }
  }
  for (const auto& [name, stored] : found) SLUICE_RETURN_IF_ERROR(CheckWhole(stored));
  return found;
}

Numbers Reordered(absl::Span<const int64_t> of, absl::Span<const size_t> order) {
  Numbers numbers;
  for (const size_t d : order) numbers.push_back(of[d]);
  return numbers;
}

// A part of a view: `shape` positions from `begin` on, along each dimension.
TensorView PartOf(const TensorView& view, absl::Span<const int64_t> begin,
                  absl::Span<const int64_t> shape, absl::Span<const size_t> order) {
  const Numbers strides = view.strides.empty() ? DenseStrides(view.shape) : view.strides;
  TensorView part = view;
  for (size_t d = 0; d < begin.size(); ++d) {
    part.byte_offset += begin[d] * strides[d] * DTypeBytes(view.dtype);
  }
  part.shape = Reordered(shape, order);
  part.strides = Reordered(strides, order);
  return part;
}

// Cuts the elements of arrays out of a wanted tensor.
class Slicer {
 public:
  Slicer(const CheckpointTensor& wanted, int rank)
      : wanted_(wanted), shape_(LaidOutShape(wanted)), rank_(rank) {}

  // Finds where this rank's elements lie, of a tensor without boxes.
  absl::Status LookAtRank() {
    if (!wanted_.layout.boxes.empty()) return absl::OkStatus();
    SLUICE_ASSIGN_OR_RETURN(owned_, OwnedRanges(wanted_.layout, shape_, rank_));
    return absl::OkStatus();
  }

  // Nothing: no rank needs an element of the array.
  absl::StatusOr<std::optional<CheckpointTensor>> Slice(const CheckpointEntry& entry) const {
    const bool is_scalar = entry.shape.empty();
    const Numbers size = is_scalar ? Numbers{1} : entry.shape;
    const Numbers offset = is_scalar ? Numbers{0} : OffsetOf(entry);
    const std::vector<size_t> order = is_scalar ? std::vector<size_t>{0} : *DimensionOrder(entry);
    CheckpointTensor slice;
    slice.name = wanted_.name;
    slice.dtype = wanted_.dtype;
    slice.shape = Reordered(size, order);
    if (wanted_.layout.boxes.empty()) {
      SlicePlaced(size, offset, order, &slice);
      return slice;
    }
    SLUICE_RETURN_IF_ERROR(SliceBoxes(size, offset, order, &slice));
    if (slice.layout.boxes.empty()) return std::nullopt;
    return slice;
  }

 private:
  void SlicePlaced(const Numbers& size, const Numbers& offset, absl::Span<const size_t> order,
                   CheckpointTensor* slice) const {
    const Layout& layout = wanted_.layout;
    Numbers begin = offset;  // in the tensor that placements cut
    for (size_t d = 0; d < layout.offset.size(); ++d) begin[d] += layout.offset[d];
    slice->layout.mesh = layout.mesh;
    slice->layout.order = layout.order;
    slice->layout.whole = Reordered(layout.whole.empty() ? shape_ : layout.whole, order);
    slice->layout.offset = Reordered(begin, order);
    for (Placement placement : layout.placements) {
      const auto at = std::find(order.begin(), order.end(), static_cast<size_t>(placement.dim));
      if (placement.kind != Placement::Kind::kReplicate) {
        placement.dim = static_cast<int>(at - order.begin());
      }
      slice->layout.placements.push_back(placement);
    }
    // Positions are in the order of indices.
    Numbers first(size.size(), 0);
    Numbers count(size.size(), 0);
    bool is_empty = false;
    for (size_t d = 0; d < size.size(); ++d) {
      for (const IndexRange& range : owned_[d]) {
        first[d] += std::max<int64_t>(0, std::min(range.end, offset[d]) - range.begin);
        count[d] += std::max<int64_t>(
            0, std::min(range.end, offset[d] + size[d]) - std::max(range.begin, offset[d]));
      }
      is_empty = is_empty || count[d] == 0;
    }
    if (!is_empty) slice->view = PartOf(wanted_.view, first, count, order);
  }

  absl::Status SliceBoxes(const Numbers& size, const Numbers& offset,
                          absl::Span<const size_t> order, CheckpointTensor* slice) const {
    std::vector<RankBoxes> ranks;
    for (const RankBoxes& of_rank : wanted_.layout.boxes.ranks()) {
      RankBoxes sliced = {of_rank.rank, {}};
      for (size_t b = 0; b < of_rank.boxes.size(); ++b) {
        const Box& box = of_rank.boxes[b];
        Numbers first, begin, count;  // in the box; in the array
        for (size_t d = 0; d < size.size(); ++d) {
          const int64_t low = std::max(box.offset[d], offset[d]);
          const int64_t high = std::min(box.offset[d] + box.shape[d], offset[d] + size[d]);
          if (low >= high) break;
          first.push_back(low - box.offset[d]);
          begin.push_back(low - offset[d]);
          count.push_back(high - low);
        }
        if (count.size() < size.size()) continue;
        sliced.boxes.push_back({Reordered(begin, order), Reordered(count, order)});
        if (of_rank.rank != rank_) continue;
        slice->view.boxes.push_back(PartOf(wanted_.view.boxes[b], first, count, order));
      }
      if (!sliced.boxes.empty()) ranks.push_back(std::move(sliced));
    }
    if (ranks.empty()) return absl::OkStatus();
    SLUICE_ASSIGN_OR_RETURN(slice->layout.boxes, BoxList::Create(std::move(ranks)));
    return absl::OkStatus();
  }

  const CheckpointTensor& wanted_;
  const Numbers shape_;
  const int rank_;
  std::vector<std::vector<IndexRange>> owned_;
};

}  // namespace

absl::StatusOr<StoredArrays> FindArrays(absl::Span<const CheckpointEntry> catalog,
                                        absl::Span<const CheckpointTensor> tensors, int rank) {
  SLUICE_ASSIGN_OR_RETURN(const StoredByName found, CheckedByName(catalog));
  StoredArrays arrays;
  absl::flat_hash_map<absl::string_view, int> number_of;
  absl::flat_hash_set<absl::string_view> names;
  std::vector<std::string> missing;
  for (const CheckpointTensor& tensor : tensors) {
    const auto at = found.find(tensor.name);
    if (at == found.end()) {
      missing.push_back(tensor.name);
      continue;
    }
    const Stored& stored = at->second;
    const DType dtype = stored.arrays.front()->dtype;
    SLUICE_RETURN_IF_ERROR(CheckFit(tensor, stored.shape, DTypeName(dtype), dtype));
    names.insert(at->first);
    Slicer slicer(tensor, rank);
    SLUICE_RETURN_IF_ERROR(slicer.LookAtRank());
    for (const CheckpointEntry* const entry : stored.arrays) {
      if (entry->bytes == 0) continue;
      SLUICE_ASSIGN_OR_RETURN(std::optional<CheckpointTensor> slice, slicer.Slice(*entry));
      if (!slice) continue;
      const auto [file, added] =
          number_of.insert({entry->file, static_cast<int>(arrays.files.size())});
      if (added) {
        arrays.files.push_back(entry->file);
        arrays.file_ends.push_back(0);
      }
      int64_t& end = arrays.file_ends[static_cast<size_t>(file->second)];
      end = std::max(end, entry->begin + entry->bytes);
      arrays.entries.push_back({file->second, entry->dtype, entry->begin});
      arrays.tensors.push_back(*std::move(slice));
    }
  }
  arrays.ignored = static_cast<int64_t>(found.size() - names.size());
  SLUICE_RETURN_IF_ERROR(CheckNoneMissing(missing, found));
  return arrays;
}

absl::StatusOr<std::vector<std::string>> NamesIn(absl::Span<const CheckpointEntry> catalog) {
  SLUICE_ASSIGN_OR_RETURN(const StoredByName found, CheckedByName(catalog));
  std::vector<std::string> names;
  for (const auto& [name, stored] : found) names.emplace_back(name);
  return names;
}

}  // namespace sluice
