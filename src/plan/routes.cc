// Routes by interval arithmetic: this rank's part against the parts of the other side it overlaps.
#include "plan/routes.h"

#include <algorithm>
#include <utility>

#include "tensor/check.h"

namespace sluice {
namespace {

// Appends the runs of one dimension; positions on a side that is the wire (null) count from 0.
void AppendRuns(const IntervalList& indices, const IntervalList* src, const IntervalList* dst,
                std::vector<Stretch>* runs) {
  const size_t first = runs->size();
  for (const Interval& interval : indices.intervals()) {
    const int64_t from = src != nullptr ? src->PositionOf(interval.begin) : interval.position;
    const int64_t to = dst != nullptr ? dst->PositionOf(interval.begin) : interval.position;
    if (runs->size() > first) {
      Stretch& last = runs->back();
      if (last.src + last.length == from && last.dst + last.length == to) {
        last.length += interval.length();
        continue;
      }
    }
    runs->push_back({from, to, interval.length()});
  }
}

}  // namespace

ClassRoutes::ClassRoutes(ClassTables* tables, PairParties* pairs, int rank)
    : tables_(*tables),
      pairs_(*pairs),
      rank_(rank),
      src_(PlaceOn(Side::kSrc, rank)),
      dst_(PlaceOn(Side::kDst, rank)) {
  if (src_.position) PlanAsSource();
  if (dst_.position) PlanAsDestination();
}

ClassRoutes::OwnSide ClassRoutes::PlaceOn(Side side, int rank) {
  const size_t dims = static_cast<size_t>(tables_.dims());
  OwnSide place;
  place.local_shape.assign(dims, 0);
  place.position = tables_.mesh(side).PositionOf(rank);
  if (!place.position) return place;
  place.parts = tables_.partition(side).PartsOf(*place.position);
  for (size_t d = 0; d < dims; ++d) {
    place.owned[d] = &tables_.Owned(side, static_cast<int>(d), place.parts[d]);
    place.local_shape[d] = place.owned[d]->size();
  }
  place.crossings = &tables_.CrossingsOf(side, place.parts);
  place.regions.assign(place.crossings->list.size(), -1);
  return place;
}

void ClassRoutes::PlanAsSource() {
  service_ = &tables_.ServiceOf(src_.parts);
  const std::vector<Crossing>& crossings = src_.crossings->list;
  for (size_t c = 0; dst_.position && c < crossings.size(); ++c) {
    if (crossings[c].parts == dst_.parts) local_crossing_ = c;
  }
  for (const ServeGroup& group : service_->table.groups) {
    const auto me = std::find(group.candidates.begin(), group.candidates.end(), rank_);
    const bool found = me != group.candidates.end();
    candidate_of_group_.push_back(found ? static_cast<size_t>(me - group.candidates.begin())
                                        : kNone);
  }
}

void ClassRoutes::PlanAsDestination() {
  const std::vector<Crossing>& crossings = dst_.crossings->list;
  const std::vector<Supplier>& suppliers = tables_.SuppliersOf(dst_.parts);
  supplies_.reserve(crossings.size());
  for (size_t c = 0; c < crossings.size(); ++c) {
    if (src_.position && crossings[c].parts == src_.parts) {
      own_crossing_ = c;
      if (!tables_.reduces()) continue;  // it has that itself
    }
    Supply& supply = supplies_.emplace_back();
    supply.crossing = static_cast<int32_t>(c);
    supply.from = &suppliers[c];
    if (supply.from->service != nullptr) FindShares(&supply);
  }
}

// As a rule a want's needs have all its ranks in their order, and each as many: then the place is
// known.
std::pair<size_t, size_t> ClassRoutes::PlaceInNeeds(const std::vector<Need>& needs,
                                                    int32_t want) const {
  const auto first = std::lower_bound(needs.begin(), needs.end(), want,
                                      [](const Need& of, int32_t at) { return of.want < at; });
  const auto end = std::upper_bound(first, needs.end(), want,
                                    [](int32_t at, const Need& of) { return at < of.want; });
  const Partition& dst = tables_.partition(Side::kDst);
  const int64_t replica = dst.ReplicaOf(*dst_.position);
  const int64_t guess = ((replica + 1) * (end - first) - 1) / dst.replicas();
  if (guess < end - first) {
    const size_t me = static_cast<size_t>(replica - dst.replicas() * guess / (end - first));
    const absl::Span<const int> ranks = first[guess].ranks;
    if (me < ranks.size() && ranks[me] == rank_) return {first + guess - needs.begin(), me};
  }
  for (auto need = first; need != end; ++need) {
    const auto found = std::find(need->ranks.begin(), need->ranks.end(), rank_);
    if (found == need->ranks.end()) continue;
    return {need - needs.begin(), found - need->ranks.begin()};
  }
  SLUICE_CHECK(false, "a rank's need is served by nobody");
  return {};
}

void ClassRoutes::FindShares(Supply* supply) const {
  const ServeTable& table = supply->from->service->table;
  const auto [need, me] = PlaceInNeeds(table.needs, supply->from->want);
  supply->need = static_cast<int32_t>(need);
  const std::vector<Share>& shares =
      table.groups[static_cast<size_t>(table.group_of_need[need])].shares;
  const auto place = std::make_pair(supply->need, static_cast<int32_t>(me));
  const auto first =
      std::lower_bound(shares.begin(), shares.end(), place, [](const Share& share, const auto& at) {
        return std::make_pair(share.need, share.end_rank - 1) < at;
      });
  const auto end =
      std::upper_bound(first, shares.end(), place, [](const auto& at, const Share& share) {
        return at < std::make_pair(share.need, share.first_rank);
      });
  supply->first_share = static_cast<int32_t>(first - shares.begin());
  supply->end_share = static_cast<int32_t>(end - shares.begin());
}

int32_t ClassRoutes::AddRegion(const OwnSide& place, size_t crossing, Role role, Plan* plan) const {
  const size_t dims = static_cast<size_t>(tables_.dims());
  RegionRuns region;
  region.dims = static_cast<int8_t>(dims);
  for (size_t i = 0; i < dims; ++i) {
    const int32_t overlap = place.crossings->list[crossing].overlap[i];
    const IntervalList& indices =
        (*place.crossings->by_dim[i])[static_cast<size_t>(overlap)].indices;
    region.first_run[i] = static_cast<int32_t>(plan->runs.size());
    region.extent[i] = indices.size();
    AppendRuns(indices, Has(role, Role::kSource) ? src_.owned[i] : nullptr,
               Has(role, Role::kDestination) ? dst_.owned[i] : nullptr, &plan->runs);
  }
  region.first_run[dims] = static_cast<int32_t>(plan->runs.size());
  plan->regions.push_back(region);
  return static_cast<int32_t>(plan->regions.size() - 1);
}

int32_t ClassRoutes::RegionOf(OwnSide* place, size_t crossing, Role role, Plan* plan) const {
  int32_t& region = place->regions[crossing];
  if (region < 0) region = AddRegion(*place, crossing, role, plan);
  return region;
}

void ClassRoutes::AppendRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes) {
  if (src_.position && !tables_.reduces()) {
    AppendLocalRoute(plan, routes);
    AppendSourceRoutes(rotation, plan, routes);
  }
  if (src_.position && tables_.reduces()) AppendReducedRoutes(rotation, plan, routes);
  if (dst_.position) AppendDestinationRoutes(rotation, plan, routes);
}

void ClassRoutes::AppendLocalRoute(Plan* plan, std::vector<Route>* routes) {
  if (local_crossing_ == kNone) return;
  if (local_region_ < 0) local_region_ = AddRegion(src_, local_crossing_, Role::kLocal, plan);
  const Crossing& crossing = src_.crossings->list[local_crossing_];
  Route route;
  route.role = Role::kLocal;
  route.party = &pairs_.Of(rank_, rank_);
  route.region = local_region_;
  route.end = crossing.elements;
  route.row_elements = crossing.row_elements;
  routes->push_back(route);
}

void ClassRoutes::AppendSourceRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes) {
  const ServeTable& table = service_->table;
  for (size_t g = 0; g < table.groups.size(); ++g) {
    if (candidate_of_group_[g] == kNone) continue;
    const ServeGroup& group = table.groups[g];
    const size_t slot = group.SlotOf(candidate_of_group_[g], rotation);
    for (int32_t s = group.first_share[slot]; s < group.first_share[slot + 1]; ++s) {
      const Share& share = group.shares[static_cast<size_t>(s)];
      const Need& need = table.needs[static_cast<size_t>(share.need)];
      const size_t crossing = static_cast<size_t>(need.want);
      Route route;
      route.region = RegionOf(&src_, crossing, Role::kSource, plan);
      route.begin = share.begin;
      route.end = share.end;
      route.row_elements = src_.crossings->list[crossing].row_elements;
      if (!need.apart) {
        route.party = &tables_.parties().Of(rank_, service_->holders, need, share);
        routes->push_back(route);
        continue;
      }
      for (int32_t i = share.first_rank; i < share.end_rank; ++i) {
        route.party = &pairs_.Of(rank_, need.ranks[static_cast<size_t>(i)]);
        routes->push_back(route);
      }
    }
  }
}

// True if this rank is one of those whose contributions `owner` of a share of `need` adds up.
bool ClassRoutes::Contributes(const Need& need, absl::Span<const int> holders, int owner) const {
  const absl::Span<const int> all = tables_.parties().ContributorsTo(need, holders, owner);
  return std::find(all.begin(), all.end(), rank_) != all.end();
}

// As a holder of contributions: what this rank reduces, and what it gives to others that do.
void ClassRoutes::AppendReducedRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes) {
  const absl::Span<const int> holders = service_->holders;
  const ServeTable& table = service_->table;
  for (const ServeGroup& group : table.groups) {
    for (size_t slot = 0; slot < group.candidates.size(); ++slot) {
      const int owner = group.candidates[group.CandidateOf(slot, rotation)];
      bool contributes = false;
      for (int32_t s = group.first_share[slot]; s < group.first_share[slot + 1]; ++s) {
        const Share& share = group.shares[static_cast<size_t>(s)];
        const Need& need = table.needs[static_cast<size_t>(share.need)];
        // An owner that holds a contribution adds up the same ones for all its shares.
        if (s == group.first_share[slot] || need.replica >= 0) {
          contributes = Contributes(need, holders, owner);
        }
        if (!contributes) continue;
        const size_t crossing = static_cast<size_t>(need.want);
        Route route;
        route.party = &tables_.parties().Of(owner, holders, need, share);
        route.role = RoleInReduction(*route.party, rank_);
        route.region = RegionOf(&src_, crossing, Role::kSource, plan);
        if (crossing == local_crossing_) {
          route.role = route.role | Role::kDestination;
          route.dst_region = RegionOf(&dst_, own_crossing_, Role::kDestination, plan);
        }
        route.begin = share.begin;
        route.end = share.end;
        route.row_elements = src_.crossings->list[crossing].row_elements;
        routes->push_back(route);
      }
    }
  }
}

void ClassRoutes::AppendDestinationRoutes(int64_t rotation, Plan* plan,
                                          std::vector<Route>* routes) {
  for (const Supply& supply : supplies_) {
    if (supply.from->service != nullptr) {
      AppendSupply(supply, rotation, plan, routes);
      continue;
    }
    const size_t crossing = static_cast<size_t>(supply.crossing);
    Route route;
    route.role = Role::kDestination;
    route.party = &pairs_.Of(supply.from->holder, rank_);
    route.region = RegionOf(&dst_, crossing, Role::kDestination, plan);
    route.end = dst_.crossings->list[crossing].elements;
    route.row_elements = dst_.crossings->list[crossing].row_elements;
    routes->push_back(route);
  }
}

void ClassRoutes::AppendSupply(const Supply& supply, int64_t rotation, Plan* plan,
                               std::vector<Route>* routes) {
  const ServeTable& table = supply.from->service->table;
  const absl::Span<const int> holders = supply.from->service->holders;
  const size_t crossing = static_cast<size_t>(supply.crossing);
  const Need& need = table.needs[static_cast<size_t>(supply.need)];
  const ServeGroup& group =
      table.groups[static_cast<size_t>(table.group_of_need[static_cast<size_t>(supply.need)])];
  for (int32_t s = supply.first_share; s < supply.end_share; ++s) {
    const Share& share = group.shares[static_cast<size_t>(s)];
    const auto after = std::upper_bound(group.first_share.begin(), group.first_share.end(), s);
    const size_t slot = static_cast<size_t>(after - group.first_share.begin()) - 1;
    const int src = group.candidates[group.CandidateOf(slot, rotation)];
    // Its own contributions this rank has planned as a holder.
    if (Contributes(need, holders, src)) continue;
    Route route;
    route.role = src == rank_ ? Role::kOwner | Role::kDestination : Role::kDestination;
    route.party =
        need.apart ? &pairs_.Of(src, rank_) : &tables_.parties().Of(src, holders, need, share);
    route.region = RegionOf(&dst_, crossing, Role::kDestination, plan);
    route.begin = share.begin;
    route.end = share.end;
    route.row_elements = dst_.crossings->list[crossing].row_elements;
    routes->push_back(route);
  }
}

}  // namespace sluice
