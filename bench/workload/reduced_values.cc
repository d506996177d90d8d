// From element to group to contributions.
#include "workload/reduced_values.h"

#include <algorithm>

#include "tensor/check.h"
#include "workload/owned_indices.h"

namespace sluice::bench {
namespace {

// Contributions of one stretch stay in the second-level cache.
constexpr int64_t kStretchElements = 2048;

bool Cuts(const Placement& placement, size_t dim) {
  return (placement.kind == Placement::Kind::kShard ||
          placement.kind == Placement::Kind::kStridedShard) &&
         static_cast<size_t>(placement.dim) == dim;
}

}  // namespace

bool HasPartial(const Layout& layout) {
  return std::any_of(layout.placements.begin(), layout.placements.end(),
                     [](const Placement& p) { return p.kind == Placement::Kind::kPartial; });
}

Filler MakeSourceFiller(const TensorTransfer& tensor, int rank, const Fill& fill) {
  const std::optional<int64_t> position = tensor.src.mesh.PositionOf(rank);
  if (!position || !HasPartial(tensor.src)) {
    return Filler(tensor.src_dtype, fill.modulus, fill.HashOf(tensor.name));
  }
  const SourceGroups groups(tensor.src);
  const int lowest =
      groups.LowestHolder(groups.BaseOf(*position), groups.ContributionOf(*position));
  return Filler(tensor.src_dtype, fill.modulus, fill.HashOfContribution(tensor.name, lowest));
}

ReducedValues::ReducedValues(const TensorTransfer& tensor, const Fill& fill)
    : Values(tensor.dst_dtype),
      src_dtype_(tensor.src_dtype),
      groups_(tensor.src),
      shape_(tensor.shape),
      strides_(DenseStrides(tensor.shape)),
      owned_(tensor.shape.size()) {
  SLUICE_CHECK(CanConvert(tensor.src_dtype, tensor.dst_dtype), "there is no such cast");
  for (size_t d = 0; d < shape_.size(); ++d) {
    AddOwned(tensor, d);
    if (owned_[d].size() > 1) last_cut_ = d;
  }
  fillers_.resize(tensor.src.mesh.ranks().size());
  for (const int64_t base : groups_.bases()) {
    for (size_t i = 0; i < groups_.contributions(); ++i) {
      fillers_[static_cast<size_t>(base)].emplace_back(
          src_dtype_, fill.modulus,
          fill.HashOfContribution(tensor.name, groups_.LowestHolder(base, i)));
    }
  }
  const auto bytes = static_cast<size_t>(kStretchElements * DTypeBytes(src_dtype_));
  stretches_.assign(groups_.contributions(), std::vector<std::byte>(bytes));
}

// What a rank owns along `dim` depends on its coordinates in the mesh dimensions that cut it, so
// the ranks that are first in all others own every index once.
void ReducedValues::AddOwned(const TensorTransfer& tensor, size_t dim) {
  const auto ranks = static_cast<int64_t>(tensor.src.mesh.ranks().size());
  for (int64_t position = 0; position < ranks; ++position) {
    int64_t stride = ranks;
    bool first = true;
    for (size_t m = 0; m < tensor.src.placements.size(); ++m) {
      const int64_t size = tensor.src.mesh.sizes()[m];
      stride /= size;
      first = first && (Cuts(tensor.src.placements[m], dim) || position / stride % size == 0);
    }
    if (!first) continue;
    const int rank = tensor.src.mesh.ranks()[static_cast<size_t>(position)];
    const OwnedIndices owned(tensor.src, static_cast<int>(dim), shape_[dim], rank);
    for (const auto& [begin, end] : owned.Stretches()) {
      owned_[dim].push_back({begin, end, position});
    }
  }
  std::sort(owned_[dim].begin(), owned_[dim].end(),
            [](const Owned& a, const Owned& b) { return a.begin < b.begin; });
}

ReducedValues::Stretch ReducedValues::StretchAt(int64_t g) const {
  Stretch stretch{0, 0};
  for (size_t d = 0; d <= last_cut_; ++d) {
    const int64_t index = g / strides_[d] % shape_[d];
    const auto after = std::upper_bound(owned_[d].begin(), owned_[d].end(), index,
                                        [](int64_t i, const Owned& o) { return i < o.begin; });
    const Owned& owned = *std::prev(after);
    stretch.base += owned.position;
    if (d == last_cut_) stretch.count = (owned.end - index) * strides_[d] - g % strides_[d];
  }
  return stretch;
}

void ReducedValues::WriteStretch(int64_t g, const Stretch& stretch, std::byte* dst) const {
  std::vector<std::byte*> contributions;
  contributions.reserve(stretches_.size());
  const std::vector<Filler>& fillers = fillers_[static_cast<size_t>(stretch.base)];
  for (size_t i = 0; i < stretches_.size(); ++i) {
    fillers[i].Write(g, stretch.count, stretches_[i].data());
    contributions.push_back(stretches_[i].data());
  }
  ReduceInPlace(groups_.steps(), src_dtype_, stretch.count, contributions);
  ConvertElements(src_dtype_, contributions[0], stretch.count, dtype(), dst);
}

void ReducedValues::Write(int64_t g, int64_t count, std::byte* dst) const {
  while (count > 0) {
    Stretch stretch = StretchAt(g);
    stretch.count = std::min({stretch.count, count, kStretchElements});
    WriteStretch(g, stretch, dst);
    g += stretch.count;
    count -= stretch.count;
    dst += stretch.count * DTypeBytes(dtype());
  }
}

}  // namespace sluice::bench
