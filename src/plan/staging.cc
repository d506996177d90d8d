// Finds the buckets that cross as their tensors lie, and the staging that the others take.
#include "plan/staging.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>

#include "tensor/contiguity.h"

namespace sluice {
namespace {

class Staging {
 public:
  Staging(const TransferSpec& spec, absl::Span<const absl::Span<const int64_t>> local_shapes,
          const Plan& plan)
      : spec_(spec), local_shapes_(local_shapes), plan_(plan) {}

  // Adds what this rank's part of a bucket takes if its tensors are dense.
  void AddTo(Bucket* bucket) const {
    if (bucket->role == Role::kLocal) return;
    if (Has(bucket->role, Role::kOwner)) AddAdder(bucket);
    if (OwnsResult(bucket->role)) {
      bucket->unpacks = Has(bucket->role, Role::kDestination);
      bucket->staging_bytes = SlotBytes(plan_, *bucket);
      return;
    }
    const Chunk& chunk = plan_.chunks[static_cast<size_t>(bucket->first_chunk)];
    const TensorTransfer& tensor = spec_.tensors[static_cast<size_t>(chunk.tensor)];
    const DType wire = WireDType(tensor);
    if (AddsForOwner(bucket->role)) {
      bucket->staging_bytes = SlotBytes(plan_, *bucket);
    } else if (bucket->role != Role::kDestination) {
      const bool gives = Has(bucket->role, Role::kContributor);
      bucket->packs = !((gives || tensor.src_dtype == wire) &&
                        CrossesAsItLies(*bucket, chunk.region, &Stretch::src, tensor.src_dtype));
      if (bucket->packs) bucket->staging_bytes = gives ? bucket->contribution_bytes : bucket->bytes;
    }
    if (Has(bucket->role, Role::kDestination)) {
      const int32_t region = chunk.dst_region >= 0 ? chunk.dst_region : chunk.region;
      bucket->unpacks = !(tensor.dst_dtype == wire &&
                          CrossesAsItLies(*bucket, region, &Stretch::dst, tensor.dst_dtype));
      if (bucket->unpacks) bucket->staging_bytes = std::max(bucket->staging_bytes, bucket->bytes);
    }
  }

 private:
  void AddAdder(Bucket* bucket) const {
    const Chunk& chunk = plan_.chunks[static_cast<size_t>(bucket->first_chunk)];
    const TensorTransfer& tensor = spec_.tensors[static_cast<size_t>(chunk.tensor)];
    const Channel& channel = plan_.channels[static_cast<size_t>(bucket->channel)];
    if (channel.own_contribution >= 0) {
      const std::optional<Rows> rows =
          LiesInRows(*bucket, chunk.region, &Stretch::src, tensor.src_dtype);
      bucket->own_lies = rows && rows->count == 1;
      bucket->own_in_rows = rows && rows->count > 1;
    }
    if (!OwnsResult(bucket->role) || !Has(bucket->role, Role::kDestination)) return;
    const int32_t region = chunk.dst_region >= 0 ? chunk.dst_region : chunk.region;
    bucket->sum_in_place = tensor.dst_dtype == tensor.src_dtype &&
                           CrossesAsItLies(*bucket, region, &Stretch::dst, tensor.dst_dtype);
  }

  // True if a bucket's only chunk needs no copy where this rank's local tensor is dense.
  bool CrossesAsItLies(const Bucket& bucket, int32_t region, int64_t Stretch::*side,
                       DType dtype) const {
    return LiesInRows(bucket, region, side, dtype).has_value();
  }

  std::optional<Rows> LiesInRows(const Bucket& bucket, int32_t region_index, int64_t Stretch::*side,
                                 DType dtype) const {
    if (bucket.chunk_count != 1) return std::nullopt;
    const Chunk& chunk = plan_.chunks[static_cast<size_t>(bucket.first_chunk)];
    const RegionRuns& region = plan_.regions[static_cast<size_t>(region_index)];
    const absl::Span<const int64_t> local = local_shapes_[static_cast<size_t>(region_index)];
    const size_t dims = static_cast<size_t>(region.dims);
    std::array<absl::Span<const Stretch>, kMaxTensorDims> runs;
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
    return RowsAsTheyLie(channel, memory, chunk);
  }

  const TransferSpec& spec_;
  const absl::Span<const absl::Span<const int64_t>> local_shapes_;
  const Plan& plan_;
};

}  // namespace

void AddStaging(const TransferSpec& spec, int max_in_flight,
                absl::Span<const absl::Span<const int64_t>> local_shapes, Plan* plan) {
  const Staging staging(spec, local_shapes, *plan);
  // The channels' buckets one after the other.
  std::vector<int64_t> bytes_of(plan->buckets.size());
  std::vector<int64_t*> end_of;  // what is there so far
  end_of.reserve(plan->channels.size());
  int64_t* next = bytes_of.data();
  for (const Channel& channel : plan->channels) {
    end_of.push_back(next);
    next += channel.buckets;
  }
  for (Bucket& bucket : plan->buckets) {
    staging.AddTo(&bucket);
    *end_of[static_cast<size_t>(bucket.channel)]++ = bucket.staging_bytes;
  }
  int64_t* bytes = bytes_of.data();
  for (int64_t* const end : end_of) {
    const int64_t held = std::min<int64_t>(end - bytes, max_in_flight);
    std::partial_sort(bytes, bytes + held, end, std::greater<>());
    plan->peak_buckets_without_budget += held;
    plan->peak_bytes_without_budget =
        std::accumulate(bytes, bytes + held, plan->peak_bytes_without_budget);
    bytes = end;
  }
}

}  // namespace sluice
