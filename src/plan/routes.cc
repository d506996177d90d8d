// Routes by interval arithmetic: this rank's part against the parts of the other side it overlaps.
#include "plan/routes.h"

#include <algorithm>
#include <utility>

#include "tensor/check.h"

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

ClassRoutes::ClassRoutes(const TensorTransfer& tensor, const PlanOptions& options, int layout_pair,
                         int rank)
    : tensor_(tensor),
      options_(options),
      rank_(rank),
      dims_(static_cast<int>(tensor.shape.size())),
      src_(tensor.src, dims_),
      dst_(tensor.dst, dims_),
      parties_(tensor, src_, options, layout_pair),
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

std::vector<Want> ClassRoutes::WantsOf(absl::Span<const Crossing> crossings) const {
  std::vector<Want> wants;
  wants.reserve(crossings.size());
  const absl::Span<const int> ranks = tensor_.dst.mesh.ranks();
  for (const Crossing& crossing : crossings) {
    Want want = {{}, crossing.elements, crossing.row_elements};
    for (int64_t replica = 0; replica < dst_.replicas(); ++replica) {
      want.ranks.push_back(ranks[static_cast<size_t>(dst_.PositionOf(crossing.parts, replica))]);
    }
    wants.push_back(std::move(want));
  }
  return wants;
}

// By replica, then by contribution.
std::vector<int> ClassRoutes::HoldersOf(const PartTuple& parts) const {
  std::vector<int> holders;
  holders.reserve(static_cast<size_t>(src_.replicas() * src_.contributions()));
  for (int64_t replica = 0; replica < src_.replicas(); ++replica) {
    for (int64_t c = 0; c < src_.contributions(); ++c) {
      const int64_t position = src_.PositionOf(parts, replica, c);
      holders.push_back(tensor_.src.mesh.ranks()[static_cast<size_t>(position)]);
    }
  }
  return holders;
}

ServeTable ClassRoutes::Divide(absl::Span<const int> holders, absl::Span<const Want> wants) const {
  if (reduces()) return ServeReduced(holders, wants, parties_.element_bytes());
  return Serve(holders, wants, options_.node_of_rank, parties_.element_bytes());
}

void ClassRoutes::PlanAsSource() {
  as_source_ = FindOverlaps(src_owned_, dst_);
  holders_ = HoldersOf(src_parts_);
  wants_ = WantsOf(as_source_.crossings);
  serve_ = Divide(holders_, wants_);
  for (size_t c = 0; c < as_source_.crossings.size(); ++c) {
    if (dst_position_ && as_source_.crossings[c].parts == dst_parts_) local_crossing_ = c;
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
    if (src_position_ && as_destination_.crossings[c].parts == src_parts_) {
      own_crossing_ = c;
      if (!reduces()) continue;  // it has that itself
    }
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

// This rank's want alone: a single holder serves each one in full, whatever the others are.
std::vector<Want> ClassRoutes::OwnWant(const Crossing& crossing) const {
  Crossing own = crossing;
  own.parts = dst_parts_;
  return WantsOf(absl::MakeConstSpan(&own, 1));
}

// All wants of a source part, as its holders see them; `mine`: which is this rank's.
std::vector<Want> ClassRoutes::WantsOfPart(const PartTuple& src_parts, int32_t* mine) {
  OverlapsByDim by_dim{};
  *mine = 0;
  for (size_t i = 0; i < static_cast<size_t>(dims_); ++i) {
    by_dim[i] = &TargetsOf(static_cast<int>(i), src_parts[i]);
    const auto own = std::lower_bound(
        by_dim[i]->begin(), by_dim[i]->end(), dst_parts_[i],
        [](const PartOverlap& overlap, int64_t part) { return overlap.part < part; });
    *mine = *mine * static_cast<int32_t>(by_dim[i]->size()) +
            static_cast<int32_t>(own - by_dim[i]->begin());
  }
  return WantsOf(Cross(by_dim));
}

ClassRoutes::Supply ClassRoutes::SupplyFor(int32_t crossing_index) {
  const Crossing& crossing = as_destination_.crossings[static_cast<size_t>(crossing_index)];
  Supply supply;
  supply.crossing = crossing_index;
  supply.holders = HoldersOf(crossing.parts);
  if (supply.holders.size() == 1 && dst_.replicas() == 1) {
    supply.need.ranks = {rank_};
    supply.group.candidates = supply.holders;
    supply.group.shares = {{0, 0, crossing.elements}};
    supply.slots = {0};
    return supply;
  }
  int32_t mine = 0;
  const std::vector<Want> wants =
      supply.holders.size() == 1 ? OwnWant(crossing) : WantsOfPart(crossing.parts, &mine);
  const ServeTable table = Divide(supply.holders, wants);
  const auto has_me = [this, mine](const Need& need) {
    return need.want == mine &&
           std::find(need.ranks.begin(), need.ranks.end(), rank_) != need.ranks.end();
  };
  const auto need = std::find_if(table.needs.begin(), table.needs.end(), has_me);
  SLUICE_CHECK(need != table.needs.end(), "a rank's need is served by nobody");
  const int32_t need_index = static_cast<int32_t>(need - table.needs.begin());
  const ServeGroup& group =
      table.groups[static_cast<size_t>(table.group_of_need[static_cast<size_t>(need_index)])];
  supply.need = *need;
  supply.group.candidates = group.candidates;
  supply.group.rotates = group.rotates;
  for (size_t q = 0; q < group.candidates.size(); ++q) {
    for (int32_t s = group.first_share[q]; s < group.first_share[q + 1]; ++s) {
      const Share& share = group.shares[static_cast<size_t>(s)];
      if (share.need != need_index) continue;
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
    AppendRuns(indices, Has(role, Role::kSource) ? &src_owned_[i] : nullptr,
               Has(role, Role::kDestination) ? &dst_owned_[i] : nullptr, &plan->runs);
  }
  region.first_run[static_cast<size_t>(dims_)] = static_cast<int32_t>(plan->runs.size());
  plan->regions.push_back(region);
  return static_cast<int32_t>(plan->regions.size() - 1);
}

int32_t ClassRoutes::SourceRegion(size_t crossing, Plan* plan) {
  Crossing& from = as_source_.crossings[crossing];
  if (from.region < 0) from.region = AddRegion(as_source_, from, Role::kSource, plan);
  return from.region;
}

int32_t ClassRoutes::DestinationRegion(size_t crossing, Plan* plan) {
  Crossing& to = as_destination_.crossings[crossing];
  if (to.region < 0) to.region = AddRegion(as_destination_, to, Role::kDestination, plan);
  return to.region;
}

void ClassRoutes::AppendRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes) {
  if (src_position_ && !reduces()) {
    AppendLocalRoute(plan, routes);
    AppendSourceRoutes(rotation, plan, routes);
  }
  if (src_position_ && reduces()) AppendReducedRoutes(rotation, plan, routes);
  if (dst_position_) AppendDestinationRoutes(rotation, plan, routes);
}

void ClassRoutes::AppendLocalRoute(Plan* plan, std::vector<Route>* routes) {
  if (local_crossing_ == kNone) return;
  Crossing& crossing = as_source_.crossings[local_crossing_];
  if (crossing.local_region < 0) {
    crossing.local_region = AddRegion(as_source_, crossing, Role::kLocal, plan);
  }
  Route route;
  route.role = Role::kLocal;
  route.party = &parties_.Local(rank_);
  route.region = crossing.local_region;
  route.end = crossing.elements;
  route.row_elements = crossing.row_elements;
  routes->push_back(route);
}

void ClassRoutes::AppendSourceRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes) {
  for (size_t g = 0; g < serve_.groups.size(); ++g) {
    if (candidate_of_group_[g] == kNone) continue;
    const ServeGroup& group = serve_.groups[g];
    const size_t slot = group.SlotOf(candidate_of_group_[g], rotation);
    for (int32_t s = group.first_share[slot]; s < group.first_share[slot + 1]; ++s) {
      const Share& share = group.shares[static_cast<size_t>(s)];
      const Need& need = serve_.needs[static_cast<size_t>(share.need)];
      const size_t crossing = static_cast<size_t>(need.want);
      Route route;
      route.party = &parties_.Of(rank_, holders_, need, share.end - share.begin);
      route.region = SourceRegion(crossing, plan);
      route.begin = share.begin;
      route.end = share.end;
      route.row_elements = as_source_.crossings[crossing].row_elements;
      routes->push_back(route);
    }
  }
}

// As a holder of contributions: what this rank reduces, and what it gives to others that do.
void ClassRoutes::AppendReducedRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes) {
  for (const ServeGroup& group : serve_.groups) {
    for (size_t slot = 0; slot < group.candidates.size(); ++slot) {
      const int owner = group.candidates[group.CandidateOf(slot, rotation)];
      const absl::Span<const int> row = parties_.ContributorsWith(holders_, owner);
      if (std::find(row.begin(), row.end(), rank_) == row.end()) continue;
      for (int32_t s = group.first_share[slot]; s < group.first_share[slot + 1]; ++s) {
        const Share& share = group.shares[static_cast<size_t>(s)];
        const Need& need = serve_.needs[static_cast<size_t>(share.need)];
        const size_t crossing = static_cast<size_t>(need.want);
        Route route;
        route.role = owner == rank_ ? Role::kOwner : Role::kContributor;
        route.party = &parties_.Of(owner, holders_, need, share.end - share.begin);
        route.region = SourceRegion(crossing, plan);
        if (crossing == local_crossing_) {
          route.role = route.role | Role::kDestination;
          route.dst_region = DestinationRegion(own_crossing_, plan);
        }
        route.begin = share.begin;
        route.end = share.end;
        route.row_elements = as_source_.crossings[crossing].row_elements;
        routes->push_back(route);
      }
    }
  }
}

void ClassRoutes::AppendDestinationRoutes(int64_t rotation, Plan* plan,
                                          std::vector<Route>* routes) {
  for (const Supply& supply : supplies_) {
    const size_t crossing = static_cast<size_t>(supply.crossing);
    for (size_t i = 0; i < supply.group.shares.size(); ++i) {
      const Share& share = supply.group.shares[i];
      const size_t slot = supply.slots[i];
      const int src = supply.group.candidates[supply.group.CandidateOf(slot, rotation)];
      const absl::Span<const int> row = parties_.ContributorsWith(supply.holders, src);
      // What this rank contributes to, it has planned as a holder.
      if (std::find(row.begin(), row.end(), rank_) != row.end()) continue;
      Route route;
      route.role = Role::kDestination;
      route.party = &parties_.Of(src, supply.holders, supply.need, share.end - share.begin);
      route.region = DestinationRegion(crossing, plan);
      route.begin = share.begin;
      route.end = share.end;
      route.row_elements = as_destination_.crossings[crossing].row_elements;
      routes->push_back(route);
    }
  }
}

}  // namespace sluice
