// Intersecting owners' ranges, and every group of source ranks against every target rank.
#include "reshard/baselines/chunks.h"

#include <algorithm>
#include <utility>

#include "tensor/check.h"
#include "workload/reduced_values.h"

namespace sluice::bench {
namespace {

int64_t Length(const std::vector<IndexRange>& ranges) {
  int64_t length = 0;
  for (const IndexRange& range : ranges) length += range.end - range.begin;
  return length;
}

std::vector<int64_t> Lengths(const Ranges& ranges) {
  std::vector<int64_t> lengths;
  for (const std::vector<IndexRange>& owned : ranges) lengths.push_back(Length(owned));
  return lengths;
}

void Append(int64_t begin, int64_t end, std::vector<IndexRange>* ranges) {
  if (!ranges->empty() && ranges->back().end == begin) {
    ranges->back().end = end;
  } else {
    ranges->push_back({begin, end});
  }
}

// Visits the chunks from one group to one target. `turn` counts the targets that the group has
// served before.
void VisitRegion(int64_t base, int dst, int64_t* turn, Chunk* chunk,
                 absl::FunctionRef<void(const Chunk&)> visit) {
  bool took_turn = false;
  for (size_t i = 0; i < chunk->groups->contributions(); ++i) {
    const std::vector<int> holders = chunk->groups->Holders(base, i);
    const bool own = std::find(holders.begin(), holders.end(), dst) != holders.end();
    const auto next = static_cast<size_t>(*turn) % holders.size();
    took_turn = took_turn || !own;
    chunk->src = own ? dst : holders[next];
    chunk->dst = dst;
    chunk->contribution = i;
    visit(*chunk);
  }
  if (took_turn) ++*turn;
}

void VisitTensor(const TensorTransfer& tensor, size_t index,
                 absl::FunctionRef<void(const Chunk&)> visit) {
  const SourceGroups groups(tensor.src);
  std::vector<Ranges> targets;
  for (const int dst : tensor.dst.mesh.ranks()) {
    targets.push_back(OwnedBy(tensor.dst, tensor.shape, dst));
  }
  for (const int64_t base : groups.bases()) {
    const int first = tensor.src.mesh.ranks()[static_cast<size_t>(base)];
    const Ranges owned = OwnedBy(tensor.src, tensor.shape, first);
    int64_t turn = 0;
    for (size_t t = 0; t < targets.size(); ++t) {
      const std::optional<SharedBlock> block = Intersect(owned, targets[t]);
      if (!block) continue;
      Chunk chunk{index, -1, -1, 0, &groups, &*block};
      VisitRegion(base, tensor.dst.mesh.ranks()[t], &turn, &chunk, visit);
    }
  }
}

}  // namespace

Ranges OwnedBy(const Layout& layout, absl::Span<const int64_t> shape, int rank) {
  auto ranges = OwnedRanges(layout, shape, rank);
  SLUICE_CHECK(ranges.ok(), "the layout is valid");
  return *std::move(ranges);
}

Block::Block(std::vector<int64_t> shape, const Ranges& positions)
    : shape_(std::move(shape)), strides_(DenseStrides(shape_)) {
  for (const std::vector<IndexRange>& ranges : positions) {
    std::vector<IndexRange>& joined = positions_.emplace_back();
    for (const IndexRange& range : ranges) Append(range.begin, range.end, &joined);
    elements_ *= Length(joined);
  }
  run_dim_ = shape_.size() - 1;
  while (run_dim_ > 0 && Length(positions_[run_dim_]) == shape_[run_dim_]) --run_dim_;
}

bool Block::box() const {
  return std::all_of(positions_.begin(), positions_.end(),
                     [](const std::vector<IndexRange>& ranges) { return ranges.size() == 1; });
}

bool Block::contiguous() const {
  if (positions_[run_dim_].size() != 1) return false;
  return std::all_of(positions_.begin(), positions_.begin() + static_cast<int64_t>(run_dim_),
                     [](const std::vector<IndexRange>& ranges) { return Length(ranges) == 1; });
}

int64_t Block::first() const {
  int64_t offset = 0;
  for (size_t d = 0; d < shape_.size(); ++d) offset += positions_[d][0].begin * strides_[d];
  return offset;
}

std::optional<SharedBlock> Intersect(const Ranges& src, const Ranges& dst) {
  Ranges src_positions(src.size());
  Ranges dst_positions(dst.size());
  for (size_t d = 0; d < src.size(); ++d) {
    int64_t src_before = 0;  // positions before the present range
    int64_t dst_before = 0;
    for (size_t i = 0, j = 0; i < src[d].size() && j < dst[d].size();) {
      const IndexRange& a = src[d][i];
      const IndexRange& b = dst[d][j];
      const int64_t begin = std::max(a.begin, b.begin);
      const int64_t end = std::min(a.end, b.end);
      if (begin < end) {
        const int64_t src_at = src_before + begin - a.begin;
        const int64_t dst_at = dst_before + begin - b.begin;
        src_positions[d].push_back({src_at, src_at + end - begin});
        dst_positions[d].push_back({dst_at, dst_at + end - begin});
      }
      if (a.end <= b.end) {
        src_before += a.end - a.begin;
        ++i;
      } else {
        dst_before += b.end - b.begin;
        ++j;
      }
    }
    if (src_positions[d].empty()) return std::nullopt;
  }
  return SharedBlock{Block(Lengths(src), src_positions), Block(Lengths(dst), dst_positions)};
}

void Pack(const Block& block, DType dtype, const std::byte* local, DType wire_dtype,
          std::byte* wire) {
  const int64_t element = DTypeBytes(dtype);
  const int64_t wire_element = DTypeBytes(wire_dtype);
  block.ForEachRun([&](int64_t offset, int64_t count) {
    ConvertElements(dtype, local + offset * element, count, wire_dtype, wire);
    wire += count * wire_element;
  });
}

void Unpack(const Block& block, DType dtype, std::byte* local, DType wire_dtype,
            const std::byte* wire) {
  const int64_t element = DTypeBytes(dtype);
  const int64_t wire_element = DTypeBytes(wire_dtype);
  block.ForEachRun([&](int64_t offset, int64_t count) {
    ConvertElements(wire_dtype, wire, count, dtype, local + offset * element);
    wire += count * wire_element;
  });
}

void ForEachChunk(const TransferSpec& spec, absl::FunctionRef<void(const Chunk&)> visit) {
  for (size_t i = 0; i < spec.tensors.size(); ++i) VisitTensor(spec.tensors[i], i, visit);
}

DType WireDType(const TensorTransfer& tensor) {
  const bool narrower = DTypeBytes(tensor.dst_dtype) < DTypeBytes(tensor.src_dtype);
  return narrower && !HasPartial(tensor.src) ? tensor.dst_dtype : tensor.src_dtype;
}

}  // namespace sluice::bench
