// Assembles one rank's plan: routes of every tensor, joined into buckets, named and ordered.
#include <algorithm>
#include <compare>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "plan/channels.h"
#include "plan/coalesce.h"
#include "plan/job_tables.h"
#include "plan/routes.h"
#include "plan/staging.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Routes with equal keys are joined: those of equal parties, in one window.
struct PartyKey {
  int window;
  int src;  // Party::first
  int dst;  // Party::last
  uint64_t number;

  friend auto operator<=>(const PartyKey&, const PartyKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PartyKey& key) {
    return H::combine(std::move(h), key.window, key.src, key.dst, key.number);
  }
};

struct PartyRoutes {
  PartyKey key;
  const Party* party;         // of the first of them
  Role role = Role::kSource;  // this rank's
  int64_t bucket_bytes = 0;
  int32_t count = 0;
};

// A route of a tensor, and the number of its party.
struct PendingRoute {
  size_t party;
  int32_t tensor;
  Route route;
};

class RankPlanner {
 public:
  RankPlanner(JobTables* job, int rank)
      : job_(*job),
        rank_(rank),
        pairs_(job->options.bucket_bytes),
        classes_(job->classes.size()),
        channels_(job->options.node_of_rank, rank, &plan_) {}

  absl::StatusOr<Plan> Make() {
    CollectRoutes();
    SLUICE_RETURN_IF_ERROR(EmitBuckets());
    SLUICE_RETURN_IF_ERROR(channels_.NumberLinks());
    SortBuckets();
    AddStaging(job_.spec, job_.options.max_in_flight, local_shapes_, &plan_);
    plan_.bucket_bytes = job_.options.bucket_bytes;
    plan_.max_in_flight = job_.options.max_in_flight;
    return std::move(plan_);
  }

 private:
  void CollectRoutes() {
    std::vector<Route> routes;
    for (size_t t = 0; t < job_.tensors.size(); ++t) {
      const TensorTransfer& tensor = job_.spec.tensors[t];
      const JobTables::Tensor& known = job_.tensors[t];
      std::unique_ptr<ClassRoutes>& of_class = classes_[known.class_number];
      if (of_class == nullptr) {
        if (!tensor.src.mesh.PositionOf(rank_) && !tensor.dst.mesh.PositionOf(rank_)) continue;
        of_class =
            std::make_unique<ClassRoutes>(job_.classes[known.class_number].get(), &pairs_, rank_);
      }
      routes.clear();
      of_class->AppendRoutes(known.rotation, &plan_, &routes);
      AddRoutes(static_cast<int32_t>(t), routes, *of_class);
    }
  }

  void AddRoutes(int32_t t, absl::Span<const Route> routes, const ClassRoutes& shapes) {
    const int window = job_.spec.tensors[static_cast<size_t>(t)].window;
    for (const Route& route : routes) {
      const PartyKey key = {window, route.party->first(), route.party->last(), route.party->number};
      const auto [found, added] = party_of_key_.try_emplace(key, parties_.size());
      if (added) {
        parties_.push_back({key, route.party, route.role, BucketBytes(*route.party), 0});
      }
      ++parties_[found->second].count;
      pending_.push_back({found->second, t, route});
      NoteShape(route.region, Has(route.role, Role::kDestination) && route.dst_region < 0 &&
                                      route.role != Role::kLocal
                                  ? shapes.dst_local_shape()
                                  : shapes.src_local_shape());
      if (route.dst_region >= 0) NoteShape(route.dst_region, shapes.dst_local_shape());
    }
  }

  int64_t BucketBytes(const Party& party) const {
    if (party.levels.empty()) return job_.options.bucket_bytes;
    return ReductionAreaBytes(job_.options.bucket_bytes, static_cast<int64_t>(party.levels.size()));
  }

  void NoteShape(int32_t region, absl::Span<const int64_t> local_shape) {
    const size_t index = static_cast<size_t>(region);
    if (index >= local_shapes_.size()) local_shapes_.resize(index + 1);
    local_shapes_[index] = local_shape;
  }

  // Numbers of the pending routes by party, the parties in the order of `parties`.
  std::vector<size_t> ByParty(absl::Span<const size_t> parties) const {
    std::vector<size_t> place(parties_.size());  // of each party's next route
    size_t next = 0;
    for (size_t party : parties) {
      place[party] = next;
      next += static_cast<size_t>(parties_[party].count);
    }
    std::vector<size_t> routes(pending_.size());
    for (size_t i = 0; i < pending_.size(); ++i) routes[place[pending_[i].party]++] = i;
    return routes;
  }

  absl::Status EmitBuckets() {
    std::vector<size_t> parties(parties_.size());
    std::iota(parties.begin(), parties.end(), size_t{0});
    std::sort(parties.begin(), parties.end(),
              [this](size_t a, size_t b) { return parties_[a].key < parties_[b].key; });
    const std::vector<size_t> routes = ByParty(parties);
    plan_.chunks.reserve(pending_.size());
    plan_.buckets.reserve(pending_.size());
    PartyBuckets buckets(job_.options.coalesce);
    size_t next = 0;
    for (size_t p : parties) {
      const PartyRoutes& party = parties_[p];
      buckets.Start(party.bucket_bytes, !party.party->levels.empty());
      for (const size_t end = next + static_cast<size_t>(party.count); next < end; ++next) {
        const PendingRoute& pending = pending_[routes[next]];
        const JobTables::Tensor& tensor = job_.tensors[static_cast<size_t>(pending.tensor)];
        buckets.Add(pending.tensor, pending.route, tensor.wire_bytes, tensor.src_bytes);
      }
      buckets.Finish();
      if (buckets.wanted() > PartyBuckets::kBucketsMax) {
        return MakeError(absl::StatusCode::kResourceExhausted, RankInWords(party.key.src),
                         RankInWords(party.key.dst, " -> "), " needs ", buckets.wanted(),
                         " buckets; at most ", PartyBuckets::kBucketsMax, " are possible");
      }
      EmitParty(party, buckets);
    }
    return absl::OkStatus();
  }

  void EmitParty(const PartyRoutes& party, const PartyBuckets& buckets) {
    const PartyKey& key = party.key;
    const int64_t mesh_size = std::max(job_.sources.count(), job_.targets.count());
    BucketIdFields id;
    id.window = static_cast<uint64_t>(key.window);
    id.phase = static_cast<uint64_t>(
        (job_.targets.Of(key.dst) - job_.sources.Of(key.src) + mesh_size) % mesh_size);
    id.src = static_cast<uint64_t>(key.src);
    id.dst = static_cast<uint64_t>(key.dst);
    id.n = key.number;
    const int32_t channel = channels_.Add(*party.party);
    plan_.channels[static_cast<size_t>(channel)].buckets +=
        static_cast<int64_t>(buckets.drafts().size());
    const int64_t first_chunk = static_cast<int64_t>(plan_.chunks.size());
    plan_.chunks.insert(plan_.chunks.end(), buckets.chunks().begin(), buckets.chunks().end());
    for (const PartyBuckets::Draft& draft : buckets.drafts()) {
      Bucket bucket;
      bucket.id = BucketId(id);
      bucket.role = party.role;
      bucket.channel = channel;
      bucket.bytes = draft.bytes;
      bucket.contribution_bytes = draft.contribution_bytes;
      bucket.first_chunk = first_chunk + static_cast<int64_t>(draft.first_chunk);
      bucket.chunk_count = static_cast<int32_t>(draft.chunk_count);
      plan_.buckets.push_back(bucket);
      AddTotals(bucket);
      ++id.round;
    }
  }

  // By id: ids with indices are smaller to move about than buckets are.
  void SortBuckets() {
    std::vector<std::pair<BucketId, size_t>> order(plan_.buckets.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = {plan_.buckets[i].id, i};
    std::sort(order.begin(), order.end());
    std::vector<Bucket> sorted;
    sorted.reserve(order.size());
    for (const auto& [id, index] : order) sorted.push_back(plan_.buckets[index]);
    plan_.buckets = std::move(sorted);
  }

  void AddTotals(const Bucket& bucket) {
    const Channel& channel = plan_.channels[static_cast<size_t>(bucket.channel)];
    for (int32_t c = 0; c < bucket.chunk_count; ++c) {
      const Chunk& chunk = plan_.chunks[static_cast<size_t>(bucket.first_chunk + c)];
      const JobTables::Tensor& tensor = job_.tensors[static_cast<size_t>(chunk.tensor)];
      const int64_t elements = chunk.end - chunk.begin;
      plan_.sent_bytes += channel.child_count * elements * tensor.wire_bytes;
      if (bucket.role == Role::kLocal) {
        plan_.local_bytes += elements * tensor.wire_bytes;
      } else if (Has(bucket.role, Role::kDestination)) {
        plan_.received_bytes += elements * tensor.wire_bytes;
      }
      if (Has(bucket.role, Role::kContributor)) {
        plan_.sent_bytes += elements * tensor.src_bytes;
      }
    }
  }

  JobTables& job_;
  const int rank_;
  PairParties pairs_;
  std::vector<std::unique_ptr<ClassRoutes>> classes_;  // null where this rank takes no part
  absl::flat_hash_map<PartyKey, size_t> party_of_key_;
  std::vector<PartyRoutes> parties_;
  std::vector<PendingRoute> pending_;
  std::vector<absl::Span<const int64_t>> local_shapes_;  // of each region; owned by classes_
  Plan plan_;
  Channels channels_;
};

}  // namespace

absl::StatusOr<Plan> PlanOneRank(JobTables* tables, int rank) {
  return RankPlanner(tables, rank).Make();
}

}  // namespace sluice
