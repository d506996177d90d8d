// Assembles one rank's plan: routes of every tensor, joined into buckets, named and ordered.
#include "plan/plan.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plan/coalesce.h"
#include "plan/routes.h"
#include "tensor/contiguity.h"

namespace sluice {
namespace {

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

// Which tensors are of one class. Numbers are equal on all ranks: they come from content alone.
class TensorClasses {
 public:
  int Of(const TensorTransfer& tensor) {
    std::string key = absl::StrCat(DTypeBytes(tensor.src_dtype), ":");
    for (int64_t size : tensor.shape) absl::StrAppend(&key, size, ",");
    AppendLayout(tensor.src, &key);
    AppendLayout(tensor.dst, &key);
    return by_key_.try_emplace(std::move(key), static_cast<int>(by_key_.size())).first->second;
  }

 private:
  void AppendLayout(const Layout& layout, std::string* key) {
    absl::StrAppend(key, "|", MeshNumber(layout.mesh));
    for (const Placement& placement : layout.placements) {
      absl::StrAppend(key, ",", PlacementName(placement));
    }
  }
  size_t MeshNumber(const Mesh& mesh) {
    const auto [it, added] = by_identity_.try_emplace(mesh.identity(), meshes_.size());
    if (!added) return it->second;
    for (size_t i = 0; i < meshes_.size(); ++i) {
      if (meshes_[i] == mesh) return it->second = i;
    }
    meshes_.push_back(mesh);
    return it->second;
  }

  std::vector<Mesh> meshes_;
  absl::flat_hash_map<const void*, size_t> by_identity_;
  absl::flat_hash_map<std::string, int> by_key_;
};

// True if the chunk's elements are consecutive in this rank's dense local tensor of shape `local`.
bool IsDense(const Plan& plan, const Chunk& chunk, Role role, absl::Span<const int64_t> local) {
  const RegionRuns& region = plan.regions[static_cast<size_t>(chunk.region)];
  const size_t dims = static_cast<size_t>(region.dims);
  std::array<absl::Span<const Run>, kMaxTensorDims> runs;
  std::array<int64_t, kMaxTensorDims> strides{};  // of elements of one byte
  int64_t stride = 1;
  for (size_t d = dims; d-- > 0;) {
    const size_t first = static_cast<size_t>(region.first_run[d]);
    runs[d] = absl::MakeConstSpan(plan.runs).subspan(
        first, static_cast<size_t>(region.first_run[d + 1]) - first);
    strides[d] = stride;
    stride *= local[d];
  }
  const RegionSide side = {absl::MakeConstSpan(runs.data(), dims),
                           role == Role::kDestination ? &Run::dst : &Run::src,
                           absl::MakeConstSpan(strides.data(), dims), 1};
  return ContiguousOffset(side, chunk.begin, chunk.end) >= 0;
}

class Planner {
 public:
  Planner(const TransferSpec& spec, const PlanOptions& options, int rank)
      : spec_(spec), options_(options), rank_(rank) {}

  absl::StatusOr<Plan> Make() {
    CollectRoutes();
    if (absl::Status status = EmitBuckets(); !status.ok()) return status;
    SortBuckets();
    return std::move(plan_);
  }

 private:
  struct Class {
    std::unique_ptr<ClassRoutes> routes;  // null where this rank takes no part
    int64_t tensors = 0;                  // seen so far
  };
  // The other rank, and what this rank is to it.
  using PairKey = std::pair<int, Role>;

  void CollectRoutes() {
    TensorClasses numbers;
    std::vector<Route> routes;
    for (size_t t = 0; t < spec_.tensors.size(); ++t) {
      const TensorTransfer& tensor = spec_.tensors[t];
      sources_.Add(tensor.src.mesh);
      targets_.Add(tensor.dst.mesh);
      const size_t number = static_cast<size_t>(numbers.Of(tensor));
      if (number == classes_.size()) {
        classes_.emplace_back();
        if (tensor.src.mesh.PositionOf(rank_) || tensor.dst.mesh.PositionOf(rank_)) {
          classes_.back().routes =
              std::make_unique<ClassRoutes>(tensor, options_.node_of_rank, rank_);
        }
      }
      Class& known = classes_[number];
      const int64_t rotation = static_cast<int64_t>(number) + known.tensors++;
      if (known.routes == nullptr) continue;
      routes.clear();
      known.routes->AppendRoutes(rotation, &plan_, &routes);
      AddRoutes(static_cast<int32_t>(t), routes, *known.routes);
    }
    sources_.Number();
    targets_.Number();
  }

  void AddRoutes(int32_t tensor, absl::Span<const Route> routes, const ClassRoutes& shapes) {
    const int64_t element_bytes = DTypeBytes(spec_.tensors[static_cast<size_t>(tensor)].src_dtype);
    for (const Route& route : routes) {
      pairs_.try_emplace(PairKey{route.peer, route.role}, options_.bucket_bytes)
          .first->second.Add(tensor, route, element_bytes);
      const size_t region = static_cast<size_t>(route.region);
      if (region >= local_shape_of_region_.size()) local_shape_of_region_.resize(region + 1);
      local_shape_of_region_[region] =
          route.role == Role::kDestination ? shapes.dst_local_shape() : shapes.src_local_shape();
    }
  }

  absl::Status EmitBuckets() {
    const int64_t mesh_size = std::max(sources_.count(), targets_.count());
    for (auto& [key, pair] : pairs_) {
      const auto [peer, role] = key;
      const int src = role == Role::kDestination ? peer : rank_;
      const int dst = role == Role::kSource ? peer : rank_;
      pair.Finish();
      if (pair.wanted() > PairBuckets::kBucketsMax) {
        return absl::ResourceExhaustedError(
            absl::StrCat("rank ", src, " -> ", dst, " needs ", pair.wanted(), " buckets; at most ",
                         PairBuckets::kBucketsMax, " are possible"));
      }
      BucketIdFields id;
      id.phase =
          static_cast<uint64_t>((targets_.Of(dst) - sources_.Of(src) + mesh_size) % mesh_size);
      id.src = static_cast<uint64_t>(src);
      id.dst = static_cast<uint64_t>(dst);
      const int32_t first_member = AddMembers(src, dst, role);
      const int32_t channel = AddChannel(src, dst, role, pair);
      const int64_t first_chunk = static_cast<int64_t>(plan_.chunks.size());
      plan_.chunks.insert(plan_.chunks.end(), pair.chunks().begin(), pair.chunks().end());
      std::vector<int64_t> staging_bytes;
      for (size_t round = 0; round < pair.drafts().size(); ++round) {
        const PairBuckets::Draft& draft = pair.drafts()[round];
        id.round = round;
        Bucket bucket;
        bucket.id = BucketId(id);
        bucket.role = role;
        bucket.channel = channel;
        bucket.bytes = draft.bytes;
        bucket.first_chunk = first_chunk + static_cast<int64_t>(draft.first_chunk);
        bucket.chunk_count = static_cast<int32_t>(draft.chunk_count);
        bucket.first_member = first_member;
        bucket.member_count = role == Role::kLocal ? 1 : 2;
        plan_.buckets.push_back(bucket);
        staging_bytes.push_back(StagingBytes(bucket));
      }
      AddTotals(role, pair, std::move(staging_bytes));
    }
    return absl::OkStatus();
  }

  int32_t AddMembers(int src, int dst, Role role) {
    const int32_t first = static_cast<int32_t>(plan_.members.size());
    if (role == Role::kLocal) {
      plan_.members.push_back({src, Role::kLocal});
    } else {
      plan_.members.push_back({src, Role::kSource});
      plan_.members.push_back({dst, Role::kDestination});
    }
    return first;
  }

  int32_t AddChannel(int src, int dst, Role role, const PairBuckets& pair) {
    Channel channel;
    channel.src = src;
    channel.dst = dst;
    channel.transport = role == Role::kLocal ? TransportKind::kLocal : TransportKind::kMessage;
    channel.buckets = static_cast<int64_t>(pair.drafts().size());
    plan_.channels.push_back(channel);
    return static_cast<int32_t>(plan_.channels.size() - 1);
  }

  // Staging that this side of a bucket takes if its tensors are dense.
  int64_t StagingBytes(const Bucket& bucket) const {
    if (bucket.role == Role::kLocal) return 0;
    if (bucket.chunk_count > 1) return bucket.bytes;
    const Chunk& chunk = plan_.chunks[static_cast<size_t>(bucket.first_chunk)];
    const bool dense = IsDense(plan_, chunk, bucket.role,
                               local_shape_of_region_[static_cast<size_t>(chunk.region)]);
    return dense ? 0 : bucket.bytes;
  }

  void AddTotals(Role role, const PairBuckets& pair, std::vector<int64_t> staging_bytes) {
    int64_t payload = 0;
    for (const Chunk& chunk : pair.chunks()) {
      payload += (chunk.end - chunk.begin) *
                 DTypeBytes(spec_.tensors[static_cast<size_t>(chunk.tensor)].dst_dtype);
    }
    if (role == Role::kSource) plan_.sent_bytes += payload;
    if (role == Role::kDestination) plan_.received_bytes += payload;
    if (role == Role::kLocal) plan_.local_bytes += payload;
    const size_t held = std::min(staging_bytes.size(), static_cast<size_t>(options_.max_in_flight));
    std::partial_sort(staging_bytes.begin(), staging_bytes.begin() + static_cast<ptrdiff_t>(held),
                      staging_bytes.end(), std::greater<>());
    plan_.peak_buckets_without_budget += static_cast<int64_t>(held);
    for (size_t i = 0; i < held; ++i) plan_.peak_bytes_without_budget += staging_bytes[i];
  }

  void SortBuckets() {
    std::sort(plan_.buckets.begin(), plan_.buckets.end(),
              [](const Bucket& a, const Bucket& b) { return a.id < b.id; });
  }

  const TransferSpec& spec_;
  const PlanOptions& options_;
  const int rank_;
  Positions sources_;
  Positions targets_;
  std::vector<Class> classes_;
  std::map<PairKey, PairBuckets> pairs_;
  std::vector<absl::Span<const int64_t>> local_shape_of_region_;  // owned by classes_
  Plan plan_;
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const TransferSpec& spec, const PlanOptions& options, int rank) {
  return Planner(spec, options, rank).Make();
}

}  // namespace sluice
