// Counts again what a plan says about itself.
#include "plan/plan_stats.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "oracle/brute_layout.h"
#include "plan/region_map.h"

namespace sluice::oracle {
namespace {

// Whether the elements of `chunk` follow one another in the rank's dense local tensor.
bool Consecutive(const Job& job, const Plan& plan, int rank, Role role, const Chunk& chunk) {
  const TensorTransfer& tensor = job.spec.tensors[static_cast<size_t>(chunk.tensor)];
  const Layout& layout = role == Role::kSource ? tensor.src : tensor.dst;
  const auto lists = OwnedLists(layout, tensor.shape, rank);
  std::vector<int64_t> shape;
  for (const IndexList& list : *lists) shape.push_back(static_cast<int64_t>(list.size()));
  const RegionMap map = MapRegion(plan, chunk.region);
  const auto& side = role == Role::kSource ? map.src : map.dst;
  const int64_t first = OffsetOf(chunk.begin, map.extent, side, shape);
  for (int64_t e = chunk.begin; e < chunk.end; ++e) {
    if (OffsetOf(e, map.extent, side, shape) != first + (e - chunk.begin)) return false;
  }
  return true;
}

int64_t StagingBytes(const Job& job, const Plan& plan, int rank, const Bucket& bucket) {
  if (bucket.role == Role::kLocal) return 0;
  const Chunk& chunk = plan.chunks[static_cast<size_t>(bucket.first_chunk)];
  const bool direct = bucket.chunk_count == 1 && Consecutive(job, plan, rank, bucket.role, chunk);
  return direct ? 0 : bucket.bytes;
}

}  // namespace

absl::Status CheckStats(const Job& job, const std::vector<Plan>& plans,
                        const std::vector<Moved>& moved) {
  for (int rank = 0; rank < job.ranks(); ++rank) {
    const Plan& plan = plans[static_cast<size_t>(rank)];
    const Moved& m = moved[static_cast<size_t>(rank)];
    if (plan.sent_bytes != m.sent || plan.received_bytes != m.received ||
        plan.local_bytes != m.local) {
      return absl::InternalError(absl::StrCat(
          "rank ", rank, " plans ", plan.sent_bytes, " sent, ", plan.received_bytes, " received, ",
          plan.local_bytes, " local; moves ", m.sent, ", ", m.received, ", ", m.local));
    }
    std::map<std::tuple<int, int, TransportKind>, std::vector<int64_t>> staging;
    for (const Bucket& bucket : plan.buckets) {
      const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
      staging[{channel.src, channel.dst, channel.transport}].push_back(
          StagingBytes(job, plan, rank, bucket));
    }
    int64_t peak_buckets = 0;
    int64_t peak_bytes = 0;
    for (auto& [key, bytes] : staging) {
      std::sort(bytes.begin(), bytes.end(), std::greater<>());
      const size_t held = std::min(bytes.size(), static_cast<size_t>(job.max_in_flight));
      peak_buckets += static_cast<int64_t>(held);
      for (size_t i = 0; i < held; ++i) peak_bytes += bytes[i];
    }
    if (plan.peak_buckets_without_budget != peak_buckets ||
        plan.peak_bytes_without_budget != peak_bytes) {
      return absl::InternalError(absl::StrCat(
          "rank ", rank, " plans a peak of ", plan.peak_buckets_without_budget, " buckets and ",
          plan.peak_bytes_without_budget, " bytes; counted ", peak_buckets, " and ", peak_bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice::oracle
