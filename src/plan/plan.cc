// Assembles one rank's plan: routes of every tensor, joined into buckets, named and ordered.
#include "plan/plan.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plan/channels.h"
#include "plan/coalesce.h"
#include "plan/routes.h"
#include "plan/tensor_classes.h"
#include "tensor/contiguity.h"

namespace sluice {
namespace {

// A BucketId has room for so many: a party's number counts pairs and shapes.
constexpr int kLayoutPairMax = ((1 << kCountBits) - 1 - kFanoutShapes) / kFanoutShapes;

// Positions of the ranks that any tensor comes from, or goes to, in ascending rank order.
class Positions {
 public:
  void Add(const Mesh& mesh) {
    if (!seen_.emplace(mesh.identity(), true).second) return;
    for (int rank : mesh.ranks()) present_.emplace(rank, 0);
  }
  void Number() {
    int64_t next = 0;
    for (auto& [rank, position] : present_) position = next++;
  }
  int64_t Of(int rank) const { return present_.at(rank); }
  int64_t count() const { return static_cast<int64_t>(present_.size()); }

 private:
  absl::flat_hash_map<const void*, bool> seen_;
  std::map<int, int64_t> present_;
};

// Where the routes of equal parties are joined. Not across windows.
struct PartyKey {
  int window;
  int src;
  int dst;
  uint64_t number;

  // clang-tidy 14 takes the generated comparison with 0 for a pointer's.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const PartyKey&, const PartyKey&) = default;
};

struct PartyRoutes {
  const Party* party;         // of the first of them
  Role role = Role::kSource;  // this rank's
  PartyBuckets buckets;
};

class Planner {
 public:
  Planner(const TransferSpec& spec, const PlanOptions& options, int rank)
      : spec_(spec), options_(options), rank_(rank) {}

  absl::StatusOr<Plan> Make() {
    if (absl::Status status = CollectRoutes(); !status.ok()) return status;
    if (absl::Status status = EmitBuckets(); !status.ok()) return status;
    if (absl::Status status = channels_.NumberLinks(&plan_); !status.ok()) return status;
    std::sort(plan_.buckets.begin(), plan_.buckets.end(),
              [](const Bucket& a, const Bucket& b) { return a.id < b.id; });
    AddPeaks();
    return std::move(plan_);
  }

 private:
  struct Class {
    std::unique_ptr<ClassRoutes> routes;  // null where this rank takes no part
    int64_t tensors = 0;                  // seen so far
  };

  absl::Status CollectRoutes() {
    TensorClasses numbers;
    std::vector<Route> routes;
    for (size_t t = 0; t < spec_.tensors.size(); ++t) {
      const TensorTransfer& tensor = spec_.tensors[t];
      sources_.Add(tensor.src.mesh);
      targets_.Add(tensor.dst.mesh);
      const TensorClasses::Numbers of = numbers.Of(tensor);
      const size_t number = static_cast<size_t>(of.tensor_class);
      if (number == classes_.size()) {
        classes_.emplace_back();
        if (tensor.src.mesh.PositionOf(rank_) || tensor.dst.mesh.PositionOf(rank_)) {
          classes_.back().routes =
              std::make_unique<ClassRoutes>(tensor, options_, of.layout_pair, rank_);
        }
      }
      if (of.layout_pair > kLayoutPairMax) {
        return absl::ResourceExhaustedError(
            absl::StrCat("more than ", kLayoutPairMax + 1,
                         " different pairs of layouts with reductions or replicated targets"));
      }
      Class& known = classes_[number];
      const int64_t rotation = static_cast<int64_t>(number) + known.tensors++;
      if (known.routes == nullptr) continue;
      routes.clear();
      known.routes->AppendRoutes(rotation, &plan_, &routes);
      if (absl::Status status = AddRoutes(static_cast<int32_t>(t), routes, *known.routes);
          !status.ok()) {
        return status;
      }
    }
    sources_.Number();
    targets_.Number();
    return absl::OkStatus();
  }

  absl::Status AddRoutes(int32_t t, absl::Span<const Route> routes, const ClassRoutes& shapes) {
    const TensorTransfer& tensor = spec_.tensors[static_cast<size_t>(t)];
    for (const Route& route : routes) {
      const PartyKey key = {tensor.window, route.party->src, route.party->dst(),
                            route.party->number};
      auto found = parties_.find(key);
      if (found == parties_.end()) {
        const absl::StatusOr<int64_t> bytes = BucketBytes(t, *route.party);
        if (!bytes.ok()) return bytes.status();
        PartyRoutes routes_of = {route.party, route.role,
                                 PartyBuckets(*bytes, !route.party->levels.empty())};
        found = parties_.emplace(key, std::move(routes_of)).first;
      }
      found->second.buckets.Add(t, route, DTypeBytes(WireDType(tensor)),
                                DTypeBytes(tensor.src_dtype));
      NoteShape(route.region, Has(route.role, Role::kDestination) && route.dst_region < 0 &&
                                      route.role != Role::kLocal
                                  ? shapes.dst_local_shape()
                                  : shapes.src_local_shape());
      if (route.dst_region >= 0) NoteShape(route.dst_region, shapes.dst_local_shape());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> BucketBytes(int32_t tensor, const Party& party) const {
    if (party.levels.empty()) return options_.bucket_bytes;
    const int64_t levels = static_cast<int64_t>(party.levels.size());
    const int64_t bytes = ReductionAreaBytes(options_.bucket_bytes, levels);
    if (bytes > 0) return bytes;
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", tensor, " '", spec_.tensors[static_cast<size_t>(tensor)].name,
                     "': a reduction over ", levels, " mesh dimensions needs buckets of at least ",
                     (levels + 1) * 8, " bytes, not ", options_.bucket_bytes));
  }

  void NoteShape(int32_t region, absl::Span<const int64_t> local_shape) {
    const size_t index = static_cast<size_t>(region);
    if (index >= local_shape_of_region_.size()) local_shape_of_region_.resize(index + 1);
    local_shape_of_region_[index] = local_shape;
  }

  absl::Status EmitBuckets() {
    const int64_t mesh_size = std::max(sources_.count(), targets_.count());
    for (auto& [key, routes] : parties_) {
      PartyBuckets& party = routes.buckets;
      party.Finish();
      if (party.wanted() > PartyBuckets::kBucketsMax) {
        return absl::ResourceExhaustedError(
            absl::StrCat("rank ", key.src, " -> ", key.dst, " needs ", party.wanted(),
                         " buckets; at most ", PartyBuckets::kBucketsMax, " are possible"));
      }
      BucketIdFields id;
      id.window = static_cast<uint64_t>(key.window);
      id.phase = static_cast<uint64_t>((targets_.Of(key.dst) - sources_.Of(key.src) + mesh_size) %
                                       mesh_size);
      id.src = static_cast<uint64_t>(key.src);
      id.dst = static_cast<uint64_t>(key.dst);
      id.n = key.number;
      const int32_t channel = channels_.Add(*routes.party, options_.node_of_rank, rank_, &plan_);
      plan_.channels[static_cast<size_t>(channel)].buckets +=
          static_cast<int64_t>(party.drafts().size());
      const int64_t first_chunk = static_cast<int64_t>(plan_.chunks.size());
      plan_.chunks.insert(plan_.chunks.end(), party.chunks().begin(), party.chunks().end());
      for (size_t round = 0; round < party.drafts().size(); ++round) {
        const PartyBuckets::Draft& draft = party.drafts()[round];
        id.round = round;
        Bucket bucket;
        bucket.id = BucketId(id);
        bucket.role = routes.role;
        bucket.channel = channel;
        bucket.bytes = draft.bytes;
        bucket.contribution_bytes = draft.contribution_bytes;
        bucket.first_chunk = first_chunk + static_cast<int64_t>(draft.first_chunk);
        bucket.chunk_count = static_cast<int32_t>(draft.chunk_count);
        plan_.buckets.push_back(bucket);
        AddTotals(bucket);
      }
    }
    return absl::OkStatus();
  }

  void AddTotals(const Bucket& bucket) {
    const Channel& channel = plan_.channels[static_cast<size_t>(bucket.channel)];
    for (int32_t c = 0; c < bucket.chunk_count; ++c) {
      const Chunk& chunk = plan_.chunks[static_cast<size_t>(bucket.first_chunk + c)];
      const TensorTransfer& tensor = spec_.tensors[static_cast<size_t>(chunk.tensor)];
      const int64_t elements = chunk.end - chunk.begin;
      plan_.sent_bytes += channel.child_count * elements * DTypeBytes(WireDType(tensor));
      if (bucket.role == Role::kLocal) {
        plan_.local_bytes += elements * DTypeBytes(WireDType(tensor));
      } else if (Has(bucket.role, Role::kDestination)) {
        plan_.received_bytes += elements * DTypeBytes(WireDType(tensor));
      }
      if (Has(bucket.role, Role::kContributor)) {
        plan_.sent_bytes += elements * DTypeBytes(tensor.src_dtype);
      }
    }
  }

  // True if a bucket's only chunk needs no copy where this rank's local tensor is dense.
  bool CrossesAsItLies(const Bucket& bucket, int32_t region_index, int64_t Run::*side,
                       DType dtype) const {
    if (bucket.chunk_count != 1) return false;
    const Chunk& chunk = plan_.chunks[static_cast<size_t>(bucket.first_chunk)];
    const RegionRuns& region = plan_.regions[static_cast<size_t>(region_index)];
    const absl::Span<const int64_t> local =
        local_shape_of_region_[static_cast<size_t>(region_index)];
    const size_t dims = static_cast<size_t>(region.dims);
    std::array<absl::Span<const Run>, kMaxTensorDims> runs;
    std::array<int64_t, kMaxTensorDims> strides{};
    int64_t stride = DTypeBytes(dtype);
    for (size_t d = dims; d-- > 0;) {
      const size_t first = static_cast<size_t>(region.first_run[d]);
      runs[d] = absl::MakeConstSpan(plan_.runs)
                    .subspan(first, static_cast<size_t>(region.first_run[d + 1]) - first);
      strides[d] = stride;
      stride *= local[d];
    }
    const RegionSide memory = {absl::MakeConstSpan(runs.data(), dims), side,
                               absl::MakeConstSpan(strides.data(), dims), DTypeBytes(dtype)};
    const Channel& channel = plan_.channels[static_cast<size_t>(bucket.channel)];
    return RowsAsTheyLie(channel, memory, chunk).has_value();
  }

  // What this rank's part of a bucket takes if its tensors are dense.
  void AddCopies(Bucket* bucket) const {
    if (bucket->role == Role::kLocal) return;
    const Chunk& chunk = plan_.chunks[static_cast<size_t>(bucket->first_chunk)];
    const TensorTransfer& tensor = spec_.tensors[static_cast<size_t>(chunk.tensor)];
    const DType wire = WireDType(tensor);
    if (Has(bucket->role, Role::kOwner)) {
      bucket->unpacks = Has(bucket->role, Role::kDestination);
      bucket->staging_bytes = SlotBytes(plan_, *bucket);
      return;
    }
    if (bucket->role != Role::kDestination) {
      const bool gives = Has(bucket->role, Role::kContributor);
      bucket->packs = !((gives || tensor.src_dtype == wire) &&
                        CrossesAsItLies(*bucket, chunk.region, &Run::src, tensor.src_dtype));
      if (bucket->packs) bucket->staging_bytes = gives ? bucket->contribution_bytes : bucket->bytes;
    }
    if (Has(bucket->role, Role::kDestination)) {
      const int32_t region = chunk.dst_region >= 0 ? chunk.dst_region : chunk.region;
      bucket->unpacks = !(tensor.dst_dtype == wire &&
                          CrossesAsItLies(*bucket, region, &Run::dst, tensor.dst_dtype));
      if (bucket->unpacks) bucket->staging_bytes = std::max(bucket->staging_bytes, bucket->bytes);
    }
  }

  // The largest buckets of each channel, as many as it may have in flight.
  void AddPeaks() {
    std::vector<std::vector<int64_t>> staging(plan_.channels.size());
    for (Bucket& bucket : plan_.buckets) {
      AddCopies(&bucket);
      staging[static_cast<size_t>(bucket.channel)].push_back(bucket.staging_bytes);
    }
    for (std::vector<int64_t>& bytes : staging) {
      const size_t held = std::min(bytes.size(), static_cast<size_t>(options_.max_in_flight));
      std::partial_sort(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(held), bytes.end(),
                        std::greater<>());
      plan_.peak_buckets_without_budget += static_cast<int64_t>(held);
      for (size_t i = 0; i < held; ++i) plan_.peak_bytes_without_budget += bytes[i];
    }
  }

  const TransferSpec& spec_;
  const PlanOptions& options_;
  const int rank_;
  Positions sources_;
  Positions targets_;
  std::vector<Class> classes_;
  std::map<PartyKey, PartyRoutes> parties_;
  Channels channels_;
  std::vector<absl::Span<const int64_t>> local_shape_of_region_;  // owned by classes_
  Plan plan_;
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const TransferSpec& spec, const PlanOptions& options, int rank) {
  return Planner(spec, options, rank).Make();
}

}  // namespace sluice
