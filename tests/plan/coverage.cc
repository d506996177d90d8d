// Counts the kinds of buckets in plans.
#include "plan/coverage.h"

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace sluice::oracle {

void Coverage::Count(int rank, const Plan& plan) {
  idle_ranks += plan.buckets.empty() ? 1 : 0;
  for (const Bucket& bucket : plan.buckets) {
    const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
    if (channel.src == rank) CountRoot(plan, bucket);
    if (!Has(bucket.role, Role::kContributor)) continue;
    const bool needs = Has(bucket.role, Role::kDestination);
    ++(needs ? contributors_that_need : contributors_alone);
    adders_that_need += needs && Has(bucket.role, Role::kOwner) ? 1 : 0;
  }
  for (const Chunk& chunk : plan.chunks) {
    int64_t elements = 1;
    const RegionRuns& region = plan.regions[static_cast<size_t>(chunk.region)];
    for (int d = 0; d < region.dims; ++d) elements *= region.extent[static_cast<size_t>(d)];
    split += chunk.end - chunk.begin < elements ? 1 : 0;
  }
  CountDivided(plan);
}

void Coverage::CountRoot(const Plan& plan, const Bucket& bucket) {
  const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
  joined += bucket.chunk_count > 1 ? 1 : 0;
  windows += bucket.id.fields().window > 0 ? 1 : 0;
  if (bucket.role == Role::kLocal) {
    ++locals;
    return;
  }
  ++messages;
  if (Has(bucket.role, Role::kOwner)) {
    ++reductions;
    deep_reductions += channel.level_count > 1 ? 1 : 0;
    gathered_reductions += channel.step_count > 1 ? 1 : 0;
    owners_that_only_need += channel.own_contribution < 0 ? 1 : 0;
    owners_that_need += Has(bucket.role, Role::kDestination) ? 1 : 0;
  }
  if (channel.member_count < 4) return;
  const Member& third = plan.members[static_cast<size_t>(int64_t{channel.first_member} + 3)];
  if (third.parent < 0) return;
  ++(third.parent == 0 ? stars : third.parent == 1 ? trees : chains);
}

void Coverage::CountDivided(const Plan& plan) {
  std::map<std::pair<int32_t, int32_t>, std::set<int>> sources;  // of each tensor and region
  for (const Bucket& bucket : plan.buckets) {
    if (bucket.role != Role::kDestination) continue;
    for (int32_t c = 0; c < bucket.chunk_count; ++c) {
      const Chunk& chunk = plan.chunks[static_cast<size_t>(bucket.first_chunk + c)];
      sources[{chunk.tensor, chunk.region}].insert(
          plan.channels[static_cast<size_t>(bucket.channel)].src);
    }
  }
  for (const auto& [region, from] : sources) divided += from.size() > 1 ? 1 : 0;
}

}  // namespace sluice::oracle
