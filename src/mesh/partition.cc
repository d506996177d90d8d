// Coordinates of a mesh, regrouped by tensor dimension.
#include "mesh/partition.h"

namespace sluice {
namespace {

// Averages of integers round at each dimension, and products of floats soon need all their bits.
bool JoinsLevel(ReduceOp op) {
  return op == ReduceOp::kSum || op == ReduceOp::kMax || op == ReduceOp::kMin;
}

}  // namespace

Partition::Partition(const Layout& layout, int dims)
    : whole_(layout.whole), offset_(layout.offset), dims_(dims) {
  const absl::Span<const int64_t> sizes = layout.mesh.sizes();
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t m = sizes.size(); m-- > 1;) strides[m - 1] = strides[m] * sizes[m];
  for (size_t m = 0; m < sizes.size(); ++m) {
    if (sizes[m] == 1) continue;  // one coordinate: cuts nothing off, tells nobody apart
    const Placement& placement = layout.placements[m];
    if (placement.kind == Placement::Kind::kPartial) {
      AddContributions({sizes[m], strides[m]}, placement.op);
    } else if (placement.kind == Placement::Kind::kReplicate) {
      replica_axes_.push_back({sizes[m], strides[m]});
      replicas_ *= sizes[m];
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t m = layout.order.empty() ? i : static_cast<size_t>(layout.order[i]);
    const Placement& placement = layout.placements[m];
    const bool strided = placement.kind == Placement::Kind::kStridedShard;
    if (sizes[m] == 1 || (!strided && placement.kind != Placement::Kind::kShard)) continue;
    const size_t d = static_cast<size_t>(placement.dim);
    cuts_[d].push_back({sizes[m], strided ? placement.split_factor : 1});
    axes_[d].push_back({sizes[m], strides[m]});
  }
}

void Partition::AddContributions(const Axis& axis, ReduceOp op) {
  const bool joins = !levels_.empty() && levels_.back().op == op && JoinsLevel(op);
  if (joins) {
    levels_.back().size *= axis.size;
  } else {
    levels_.push_back({axis.size, op});
    last_level_axes_ = 0;
  }
  contribution_axes_.insert(contribution_axes_.begin() + last_level_axes_++, axis);
  contributions_ *= axis.size;
}

int64_t Partition::PositionOf(const PartTuple& parts, int64_t replica, int64_t contribution) const {
  int64_t position = 0;
  const auto place = [&position](const std::vector<Axis>& axes, int64_t number) {
    for (size_t i = axes.size(); i-- > 0;) {
      position += number % axes[i].size * axes[i].stride;
      number /= axes[i].size;
    }
  };
  for (int d = 0; d < dims_; ++d)
    place(axes_[static_cast<size_t>(d)], parts[static_cast<size_t>(d)]);
  place(replica_axes_, replica);
  place(contribution_axes_, contribution);
  return position;
}

PartTuple Partition::PartsOf(int64_t position) const {
  PartTuple parts{};
  for (size_t d = 0; d < static_cast<size_t>(dims_); ++d) {
    for (const Axis& axis : axes_[d]) {
      parts[d] = parts[d] * axis.size + position / axis.stride % axis.size;
    }
  }
  return parts;
}

int64_t Partition::NumberAlong(const std::vector<Axis>& axes, int64_t position) {
  int64_t number = 0;
  for (const Axis& axis : axes) number = number * axis.size + position / axis.stride % axis.size;
  return number;
}

int64_t Partition::ReplicaOf(int64_t position) const {
  return NumberAlong(replica_axes_, position);
}

int64_t Partition::ContributionOf(int64_t position) const {
  return NumberAlong(contribution_axes_, position);
}

IntervalList Partition::Owned(int dim, int64_t part, int64_t size) const {
  const absl::Span<const Cut> dim_cuts = cuts(dim);
  std::vector<int64_t> coords(dim_cuts.size());
  for (size_t i = coords.size(); i-- > 0;) {
    coords[i] = part % dim_cuts[i].parts;
    part /= dim_cuts[i].parts;
  }
  if (whole_.empty()) return OwnedIndices(size, dim_cuts, coords);
  const size_t d = static_cast<size_t>(dim);
  return OwnedIndices(whole_[d], dim_cuts, coords).From(offset_[d], offset_[d] + size);
}

std::vector<PartOverlap> Partition::Split(int dim, int64_t size, const IntervalList& query) const {
  if (whole_.empty()) return SplitByPart(size, cuts(dim), query);
  const size_t d = static_cast<size_t>(dim);
  std::vector<PartOverlap> parts = SplitByPart(whole_[d], cuts(dim), query.MovedUp(offset_[d]));
  for (PartOverlap& part : parts) {
    part.indices = part.indices.From(offset_[d], offset_[d] + size);
  }
  return parts;
}

}  // namespace sluice
