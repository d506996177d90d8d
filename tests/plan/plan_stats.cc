// Counts again what a plan says about itself.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>

#include "oracle/brute_layout.h"
#include "plan/checks.h"
#include "plan/region_map.h"
#include "plan/wrong.h"

namespace sluice::oracle {
namespace {

// Rows shorter than this are staged, and all rows between nodes.
constexpr int64_t kRowBytesMin = 256;

// The lengths of the stretches of memory that `offsets` follow, and the distances between them.
struct Stretches {
  std::vector<int64_t> lengths;
  std::vector<int64_t> distances;
};

Stretches StretchesOf(const std::vector<int64_t>& offsets) {
  Stretches found;
  int64_t first = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (i > 0 && offsets[i] == offsets[i - 1] + 1) {
      ++found.lengths.back();
      continue;
    }
    if (i > 0) found.distances.push_back(offsets[i] - first);
    first = offsets[i];
    found.lengths.push_back(1);
  }
  return found;
}

template <typename T>
bool AllEqual(const std::vector<T>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

bool SingleRuns(const Plan& plan, int32_t region) {
  const RegionRuns& runs = plan.regions[static_cast<size_t>(region)];
  for (size_t d = 0; d < static_cast<size_t>(runs.dims); ++d) {
    if (runs.first_run[d + 1] - runs.first_run[d] != 1) return false;
  }
  return true;
}

// Whether the elements of `chunk` follow one another in the rank's dense local tensor of `layout`,
// or are whole rows of the region at one distance.
bool AsTheyLie(const Plan& plan, const Bucket& bucket, const TensorTransfer& tensor, DType dtype,
               const Layout& layout, int rank, int32_t region,
               const std::vector<std::vector<int64_t>>& side, const Chunk& chunk) {
  const RegionMap map = MapRegion(plan, region);
  const auto lists = OwnedLists(layout, tensor.shape, rank);
  std::vector<int64_t> shape;
  for (const IndexList& list : *lists) shape.push_back(static_cast<int64_t>(list.size()));
  std::vector<int64_t> offsets;
  for (int64_t e = chunk.begin; e < chunk.end; ++e) {
    offsets.push_back(OffsetOf(e, map.extent, side, shape));
  }
  const Stretches found = StretchesOf(offsets);
  if (found.lengths.size() == 1) return true;
  if (!plan.channels[static_cast<size_t>(bucket.channel)].one_node) return false;
  if (found.lengths[0] * DTypeBytes(dtype) < kRowBytesMin || !SingleRuns(plan, region))
    return false;
  return AllEqual(found.lengths) && AllEqual(found.distances) &&
         chunk.begin % found.lengths[0] == 0;
}

int64_t StagingBytes(const Job& job, const Plan& plan, int rank, const Bucket& bucket) {
  if (bucket.role == Role::kLocal) return 0;
  if (Has(bucket.role, Role::kOwner)) {
    const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
    return (channel.level_count + 1) * ((bucket.contribution_bytes + 7) / 8 * 8);
  }
  const Chunk& chunk = plan.chunks[static_cast<size_t>(bucket.first_chunk)];
  const TensorTransfer& tensor = job.spec.tensors[static_cast<size_t>(chunk.tensor)];
  const bool sends = Has(bucket.role, Role::kSource) || Has(bucket.role, Role::kContributor);
  int64_t bytes = 0;
  if (sends) {
    const bool reduced = bucket.contribution_bytes > 0;
    const bool direct = bucket.chunk_count == 1 &&
                        (reduced || WireDType(tensor) == tensor.src_dtype) &&
                        AsTheyLie(plan, bucket, tensor, tensor.src_dtype, tensor.src, rank,
                                  chunk.region, MapRegion(plan, chunk.region).src, chunk);
    if (!direct) bytes = reduced ? bucket.contribution_bytes : bucket.bytes;
  }
  if (Has(bucket.role, Role::kDestination)) {
    const int32_t region = sends ? chunk.dst_region : chunk.region;
    const bool direct = bucket.chunk_count == 1 && WireDType(tensor) == tensor.dst_dtype &&
                        AsTheyLie(plan, bucket, tensor, tensor.dst_dtype, tensor.dst, rank, region,
                                  MapRegion(plan, region).dst, chunk);
    if (!direct) bytes = std::max(bytes, bucket.bytes);
  }
  return bytes;
}

absl::Status CheckPeaks(const Job& job, int rank, const Plan& plan) {
  std::map<int32_t, std::vector<int64_t>> staging;  // by channel
  for (const Bucket& bucket : plan.buckets) {
    staging[bucket.channel].push_back(StagingBytes(job, plan, rank, bucket));
  }
  int64_t peak_buckets = 0;
  int64_t peak_bytes = 0;
  for (auto& [channel, bytes] : staging) {
    std::sort(bytes.begin(), bytes.end(), std::greater<>());
    const size_t held = std::min(bytes.size(), static_cast<size_t>(job.max_in_flight));
    peak_buckets += static_cast<int64_t>(held);
    for (size_t i = 0; i < held; ++i) peak_bytes += bytes[i];
  }
  if (plan.peak_buckets_without_budget != peak_buckets ||
      plan.peak_bytes_without_budget != peak_bytes) {
    return Wrong("rank ", rank, " plans a peak of ", plan.peak_buckets_without_budget,
                 " buckets and ", plan.peak_bytes_without_budget, " bytes; counted ", peak_buckets,
                 " and ", peak_bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStats(const Job& job, const std::vector<Plan>& plans,
                        const std::vector<Moved>& moved) {
  for (int rank = 0; rank < job.ranks(); ++rank) {
    const Plan& plan = plans[static_cast<size_t>(rank)];
    const Moved& m = moved[static_cast<size_t>(rank)];
    if (plan.sent_bytes != m.sent || plan.received_bytes != m.received ||
        plan.local_bytes != m.local) {
      return Wrong("rank ", rank, " plans ", plan.sent_bytes, " sent, ", plan.received_bytes,
                   " received, ", plan.local_bytes, " local; moves ", m.sent, ", ", m.received,
                   ", ", m.local);
    }
    if (absl::Status status = CheckPeaks(job, rank, plan); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace sluice::oracle
