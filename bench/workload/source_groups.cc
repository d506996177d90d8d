// Sorting mesh dimensions by what their placements do.
#include "workload/source_groups.h"

#include <algorithm>

namespace sluice::bench {

SourceGroups::SourceGroups(const Layout& layout)
    : ranks_(layout.mesh.ranks().begin(), layout.mesh.ranks().end()) {
  std::vector<Dimension> shard;
  auto stride = static_cast<int64_t>(ranks_.size());
  for (size_t m = 0; m < layout.placements.size(); ++m) {
    const int64_t size = layout.mesh.sizes()[m];
    stride /= size;
    switch (layout.placements[m].kind) {
      case Placement::Kind::kPartial:
        AddPartial({size, stride}, layout.placements[m].op);
        break;
      case Placement::Kind::kReplicate:
        replicate_.push_back({size, stride});
        break;
      case Placement::Kind::kShard:
      case Placement::Kind::kStridedShard:
        shard.push_back({size, stride});
        break;
    }
  }
  partial_offsets_ = Offsets(partial_, true);
  replicate_offsets_ = Offsets(replicate_, false);
  bases_ = Offsets(shard, false);
}

void SourceGroups::AddPartial(const Dimension& dimension, ReduceOp op) {
  if (dimension.size == 1) return;
  const bool in_one = op == ReduceOp::kSum || op == ReduceOp::kMax || op == ReduceOp::kMin;
  if (in_one && !steps_.empty() && steps_.back().op == op) {
    steps_.back().ranks *= dimension.size;
  } else {
    steps_.push_back({op, dimension.size});
    last_step_ = static_cast<ptrdiff_t>(partial_.size());
  }
  partial_.insert(partial_.begin() + last_step_, dimension);
}

std::vector<int64_t> SourceGroups::Offsets(const std::vector<Dimension>& dimensions,
                                           bool first_fastest) {
  std::vector<int64_t> offsets = {0};
  const auto extend = [&](const Dimension& dimension) {
    std::vector<int64_t> longer;
    for (int64_t c = 0; c < dimension.size; ++c) {
      for (const int64_t offset : offsets) longer.push_back(offset + c * dimension.stride);
    }
    offsets = std::move(longer);
  };
  if (first_fastest) {
    std::for_each(dimensions.begin(), dimensions.end(), extend);
  } else {
    std::for_each(dimensions.rbegin(), dimensions.rend(), extend);
  }
  return offsets;
}

std::vector<int> SourceGroups::Holders(int64_t base, size_t index) const {
  std::vector<int> holders;
  for (const int64_t offset : replicate_offsets_) {
    holders.push_back(ranks_[static_cast<size_t>(base + partial_offsets_[index] + offset)]);
  }
  return holders;
}

int SourceGroups::LowestHolder(int64_t base, size_t index) const {
  const std::vector<int> holders = Holders(base, index);
  return *std::min_element(holders.begin(), holders.end());
}

int64_t SourceGroups::BaseOf(int64_t position) const {
  int64_t base = position;
  for (const Dimension& d : partial_) base -= PartAlong(d, position) * d.stride;
  for (const Dimension& d : replicate_) base -= PartAlong(d, position) * d.stride;
  return base;
}

size_t SourceGroups::ContributionOf(int64_t position) const {
  int64_t index = 0;
  int64_t step = 1;
  for (const Dimension& d : partial_) {
    index += PartAlong(d, position) * step;
    step *= d.size;
  }
  return static_cast<size_t>(index);
}

}  // namespace sluice::bench
