// Routes by interval arithmetic: this rank's part against the parts of the other side it overlaps.
#include "plan/routes.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

// Elements of a region below its first dimension that is longer than one: the rows to cut at.
int64_t RowElements(absl::Span<const int64_t> extents) {
  size_t d = 0;
  while (d + 1 < extents.size() && extents[d] == 1) ++d;
  int64_t row = 1;
  for (size_t i = d + 1; i < extents.size(); ++i) row *= extents[i];
  return row;
}

// Appends the runs of one dimension; positions on a side that is the wire (null) count from 0.
void AppendRuns(const IntervalList& indices, const IntervalList* src, const IntervalList* dst,
                std::vector<Run>* runs) {
  const size_t first = runs->size();
  for (const Interval& interval : indices.intervals()) {
    const int64_t from = src != nullptr ? src->PositionOf(interval.begin) : interval.position;
    const int64_t to = dst != nullptr ? dst->PositionOf(interval.begin) : interval.position;
    if (runs->size() > first) {
      Run& last = runs->back();
      if (last.src + last.length == from && last.dst + last.length == to) {
        last.length += interval.length();
        continue;
      }
    }
    runs->push_back({from, to, interval.length()});
  }
}

std::vector<int64_t> ShapeOf(const std::array<IntervalList, kMaxTensorDims>& owned, int dims) {
  std::vector<int64_t> shape(static_cast<size_t>(dims));
  for (size_t d = 0; d < shape.size(); ++d) shape[d] = owned[d].size();
  return shape;
}

}  // namespace

ClassRoutes::ClassRoutes(const TensorTransfer& tensor, absl::Span<const int> node_of_rank, int rank)
    : tensor_(tensor),
      node_of_rank_(node_of_rank),
      rank_(rank),
      dims_(static_cast<int>(tensor.shape.size())),
      src_(tensor.src, dims_),
      dst_(tensor.dst, dims_),
      src_position_(tensor.src.mesh.PositionOf(rank)),
      dst_position_(tensor.dst.mesh.PositionOf(rank)) {
  if (src_position_) src_parts_ = src_.PartsOf(*src_position_);
  if (dst_position_) dst_parts_ = dst_.PartsOf(*dst_position_);
  for (int d = 0; d < dims_; ++d) {
    const size_t i = static_cast<size_t>(d);
    if (src_position_) src_owned_[i] = src_.Owned(d, src_parts_[i], tensor.shape[i]);
    if (dst_position_) dst_owned_[i] = dst_.Owned(d, dst_parts_[i], tensor.shape[i]);
  }
  src_local_shape_ = ShapeOf(src_owned_, dims_);
  dst_local_shape_ = ShapeOf(dst_owned_, dims_);
  if (src_position_) PlanAsSource();
  if (dst_position_) PlanAsDestination();
}

ClassRoutes::Overlaps ClassRoutes::FindOverlaps(const Owned& owned, const Partition& other) const {
  Overlaps overlaps;
  OverlapsByDim by_dim{};
  for (int d = 0; d < dims_; ++d) {
    const size_t i = static_cast<size_t>(d);
    overlaps.by_dim[i] = SplitByPart(tensor_.shape[i], other.cuts(d), owned[i]);
    by_dim[i] = &overlaps.by_dim[i];
  }
  overlaps.crossings = Cross(by_dim);
  return overlaps;
}

std::vector<ClassRoutes::Crossing> ClassRoutes::Cross(const OverlapsByDim& by_dim) const {
  const size_t dims = static_cast<size_t>(dims_);
  size_t count = 1;
  for (size_t i = 0; i < dims; ++i) count *= by_dim[i]->size();
  std::vector<Crossing> crossings(count);
  for (size_t c = 0; c < count; ++c) {
    Crossing& crossing = crossings[c];
    std::array<int64_t, kMaxTensorDims> extents{};
    size_t rest = c;
    for (size_t i = dims; i-- > 0;) {
      const size_t pick = rest % by_dim[i]->size();
      rest /= by_dim[i]->size();
      const PartOverlap& overlap = (*by_dim[i])[pick];
      crossing.overlap[i] = static_cast<int32_t>(pick);
      crossing.parts[i] = overlap.part;
      extents[i] = overlap.indices.size();
      crossing.elements *= extents[i];
    }
    crossing.row_elements = RowElements(absl::MakeConstSpan(extents.data(), dims));
  }
  return crossings;
}

std::vector<Need> ClassRoutes::NeedsOf(absl::Span<const Crossing> crossings) const {
  std::vector<Need> needs;
  needs.reserve(crossings.size() * static_cast<size_t>(dst_.replicas()));
  const absl::Span<const int> ranks = tensor_.dst.mesh.ranks();
  for (const Crossing& crossing : crossings) {
    for (int64_t replica = 0; replica < dst_.replicas(); ++replica) {
      const int64_t position = dst_.PositionOf(crossing.parts, replica);
      needs.push_back(
          {ranks[static_cast<size_t>(position)], crossing.elements, crossing.row_elements});
    }
  }
  return needs;
}

std::vector<int> ClassRoutes::HoldersOf(const PartTuple& parts) const {
  std::vector<int> holders;
  holders.reserve(static_cast<size_t>(src_.replicas()));
  for (int64_t replica = 0; replica < src_.replicas(); ++replica) {
    const int64_t position = src_.PositionOf(parts, replica);
    holders.push_back(tensor_.src.mesh.ranks()[static_cast<size_t>(position)]);
  }
  return holders;
}

void ClassRoutes::PlanAsSource() {
  as_source_ = FindOverlaps(src_owned_, dst_);
  needs_ = NeedsOf(as_source_.crossings);
  serve_ = Serve(HoldersOf(src_parts_), needs_, node_of_rank_, DTypeBytes(tensor_.src_dtype));
  for (size_t i = 0; i < needs_.size(); ++i) {
    if (needs_[i].rank == rank_) local_need_ = i;
  }
  for (const ServeGroup& group : serve_.groups) {
    const auto me = std::find(group.candidates.begin(), group.candidates.end(), rank_);
    const bool found = me != group.candidates.end();
    candidate_of_group_.push_back(found ? static_cast<size_t>(me - group.candidates.begin())
                                        : kNone);
  }
}

void ClassRoutes::PlanAsDestination() {
  as_destination_ = FindOverlaps(dst_owned_, src_);
  for (size_t c = 0; c < as_destination_.crossings.size(); ++c) {
    const PartTuple& parts = as_destination_.crossings[c].parts;
    // What this rank has itself is planned as its source.
    if (src_position_ && parts == src_parts_) continue;
    supplies_.push_back(SupplyFor(static_cast<int32_t>(c)));
  }
}

const std::vector<PartOverlap>& ClassRoutes::TargetsOf(int dim, int64_t src_part) {
  const size_t i = static_cast<size_t>(dim);
  const auto [it, added] = targets_[i].try_emplace(src_part);
  if (added) {
    it->second =
        SplitByPart(tensor_.shape[i], dst_.cuts(dim), src_.Owned(dim, src_part, tensor_.shape[i]));
  }
  return it->second;
}

ClassRoutes::Supply ClassRoutes::SupplyFor(int32_t crossing_index) {
  const Crossing& crossing = as_destination_.crossings[static_cast<size_t>(crossing_index)];
  Supply supply;
  supply.crossing = crossing_index;
  std::vector<int> holders = HoldersOf(crossing.parts);
  if (holders.size() == 1) {
    supply.group.candidates = std::move(holders);
    supply.group.shares = {{0, 0, crossing.elements}};
    supply.slots = {0};
    return supply;
  }
  // All that need this source part, as its holders see them; where this rank stands among them.
  OverlapsByDim by_dim{};
  int64_t mine = 0;
  for (size_t i = 0; i < static_cast<size_t>(dims_); ++i) {
    by_dim[i] = &TargetsOf(static_cast<int>(i), crossing.parts[i]);
    const auto own = std::lower_bound(
        by_dim[i]->begin(), by_dim[i]->end(), dst_parts_[i],
        [](const PartOverlap& overlap, int64_t part) { return overlap.part < part; });
    mine = mine * static_cast<int64_t>(by_dim[i]->size()) + (own - by_dim[i]->begin());
  }
  mine = mine * dst_.replicas() + dst_.ReplicaOf(*dst_position_);
  const std::vector<Need> needs = NeedsOf(Cross(by_dim));
  const ServeTable table = Serve(holders, needs, node_of_rank_, DTypeBytes(tensor_.src_dtype));
  const ServeGroup& group =
      table.groups[static_cast<size_t>(table.group_of_need[static_cast<size_t>(mine)])];
  supply.group.candidates = group.candidates;
  supply.group.rotates = group.rotates;
  for (size_t q = 0; q < group.candidates.size(); ++q) {
    for (int32_t s = group.first_share[q]; s < group.first_share[q + 1]; ++s) {
      const Share& share = group.shares[static_cast<size_t>(s)];
      if (share.need != mine) continue;
      supply.group.shares.push_back(share);
      supply.slots.push_back(q);
    }
  }
  return supply;
}

int32_t ClassRoutes::AddRegion(const Overlaps& overlaps, const Crossing& crossing, Role role,
                               Plan* plan) const {
  RegionRuns region;
  region.dims = static_cast<int8_t>(dims_);
  for (size_t i = 0; i < static_cast<size_t>(dims_); ++i) {
    const IntervalList& indices =
        overlaps.by_dim[i][static_cast<size_t>(crossing.overlap[i])].indices;
    region.first_run[i] = static_cast<int32_t>(plan->runs.size());
    region.extent[i] = indices.size();
    AppendRuns(indices, role == Role::kDestination ? nullptr : &src_owned_[i],
               role == Role::kSource ? nullptr : &dst_owned_[i], &plan->runs);
  }
  region.first_run[static_cast<size_t>(dims_)] = static_cast<int32_t>(plan->runs.size());
  plan->regions.push_back(region);
  return static_cast<int32_t>(plan->regions.size() - 1);
}

void ClassRoutes::AppendRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes) {
  if (src_position_) AppendSourceRoutes(rotation, plan, routes);
  if (dst_position_) AppendDestinationRoutes(rotation, plan, routes);
}

void ClassRoutes::AppendSourceRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes) {
  const size_t replicas = static_cast<size_t>(dst_.replicas());
  if (local_need_ != kNone) {
    Crossing& crossing = as_source_.crossings[local_need_ / replicas];
    if (crossing.local_region < 0) {
      crossing.local_region = AddRegion(as_source_, crossing, Role::kLocal, plan);
    }
    routes->push_back(
        {Role::kLocal, rank_, crossing.local_region, 0, crossing.elements, crossing.row_elements});
  }
  for (size_t g = 0; g < serve_.groups.size(); ++g) {
    if (candidate_of_group_[g] == kNone) continue;
    const ServeGroup& group = serve_.groups[g];
    const size_t slot = group.SlotOf(candidate_of_group_[g], rotation);
    for (int32_t s = group.first_share[slot]; s < group.first_share[slot + 1]; ++s) {
      const Share& share = group.shares[static_cast<size_t>(s)];
      const size_t need = static_cast<size_t>(share.need);
      Crossing& crossing = as_source_.crossings[need / replicas];
      if (crossing.region < 0) {
        crossing.region = AddRegion(as_source_, crossing, Role::kSource, plan);
      }
      routes->push_back({Role::kSource, needs_[need].rank, crossing.region, share.begin, share.end,
                         crossing.row_elements});
    }
  }
}

void ClassRoutes::AppendDestinationRoutes(int64_t rotation, Plan* plan,
                                          std::vector<Route>* routes) {
  for (const Supply& supply : supplies_) {
    Crossing& crossing = as_destination_.crossings[static_cast<size_t>(supply.crossing)];
    if (crossing.region < 0) {
      crossing.region = AddRegion(as_destination_, crossing, Role::kDestination, plan);
    }
    for (size_t i = 0; i < supply.group.shares.size(); ++i) {
      const Share& share = supply.group.shares[i];
      const int peer = supply.group.candidates[supply.group.CandidateOf(supply.slots[i], rotation)];
      routes->push_back({Role::kDestination, peer, crossing.region, share.begin, share.end,
                         crossing.row_elements});
    }
  }
}

}  // namespace sluice
