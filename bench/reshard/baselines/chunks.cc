// Every group of source ranks against every target rank.
#include "reshard/baselines/chunks.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "tensor/check.h"
#include "workload/reduced_values.h"

namespace sluice::bench {
namespace {

Ranges RangesOf(const Layout& layout, absl::Span<const int64_t> shape, int rank) {
  auto ranges = OwnedRanges(layout, shape, rank);
  SLUICE_CHECK(ranges.ok(), "the layout is valid");
  return *std::move(ranges);
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
    targets.push_back(RangesOf(tensor.dst, tensor.shape, dst));
  }
  for (const int64_t base : groups.bases()) {
    const int first = tensor.src.mesh.ranks()[static_cast<size_t>(base)];
    const Ranges owned = RangesOf(tensor.src, tensor.shape, first);
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

void ForEachChunk(const TransferSpec& spec, absl::FunctionRef<void(const Chunk&)> visit) {
  for (size_t i = 0; i < spec.tensors.size(); ++i) VisitTensor(spec.tensors[i], i, visit);
}

DType WireDType(const TensorTransfer& tensor) {
  const bool narrower = DTypeBytes(tensor.dst_dtype) < DTypeBytes(tensor.src_dtype);
  return narrower && !HasPartial(tensor.src) ? tensor.dst_dtype : tensor.src_dtype;
}

}  // namespace sluice::bench
