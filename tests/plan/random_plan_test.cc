// Thousands of random transfers, planned by every rank and carried out by brute force.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "plan/agreement.h"
#include "plan/coalescing.h"
#include "plan/delivery.h"
#include "plan/job.h"
#include "plan/plan.h"
#include "plan/plan_stats.h"

namespace sluice {
namespace {

using oracle::Job;

constexpr uint64_t kSeeds = 3000;

// What a sweep has met, so that it can be shown to have met what it is for.
struct Coverage {
  int64_t messages = 0;
  int64_t locals = 0;
  int64_t joined = 0;  // buckets of several chunks
  int64_t split = 0;   // chunks that are not all of their region
  int64_t idle_ranks = 0;
  int64_t shared = 0;  // needs that several senders divide between them

  void Count(const Plan& plan) {
    idle_ranks += plan.buckets.empty() ? 1 : 0;
    for (const Bucket& bucket : plan.buckets) {
      messages += bucket.role == Role::kSource ? 1 : 0;
      locals += bucket.role == Role::kLocal ? 1 : 0;
      joined += bucket.chunk_count > 1 ? 1 : 0;
    }
    for (const Chunk& chunk : plan.chunks) {
      int64_t elements = 1;
      const RegionRuns& region = plan.regions[static_cast<size_t>(chunk.region)];
      for (int d = 0; d < region.dims; ++d) elements *= region.extent[static_cast<size_t>(d)];
      split += chunk.end - chunk.begin < elements ? 1 : 0;
    }
    shared += SharedNeeds(plan);
  }

  static int64_t SharedNeeds(const Plan& plan) {
    std::map<int32_t, std::set<int>> sources;  // of each region
    for (const Bucket& bucket : plan.buckets) {
      if (bucket.role != Role::kDestination) continue;
      for (int32_t c = 0; c < bucket.chunk_count; ++c) {
        const Chunk& chunk = plan.chunks[static_cast<size_t>(bucket.first_chunk + c)];
        sources[chunk.tensor * 100000 + chunk.region].insert(
            plan.channels[static_cast<size_t>(bucket.channel)].src);
      }
    }
    return std::count_if(sources.begin(), sources.end(),
                         [](const auto& entry) { return entry.second.size() > 1; });
  }
};

// Plans `job` for all ranks, carries it out, and checks all that can be checked.
void ExpectGoodPlans(const Job& job, Coverage* coverage) {
  const auto plans = PlanAllRanks(job);
  ASSERT_TRUE(plans.ok()) << plans.status();
  std::vector<oracle::Moved> moved;
  const absl::Status delivered = Deliver(job, *plans, &moved);
  const absl::Status agreed = oracle::CheckAgreement(*plans);
  const absl::Status sized = CheckBucketSizes(job, *plans);
  const absl::Status counted = CheckStats(job, *plans, moved);
  EXPECT_TRUE(delivered.ok()) << delivered;
  EXPECT_TRUE(agreed.ok()) << agreed;
  EXPECT_TRUE(sized.ok()) << sized;
  EXPECT_TRUE(counted.ok()) << counted;
  for (const Plan& plan : *plans) coverage->Count(plan);
}

TEST(RandomPlanTest, PlansDeliverAgreeAndCount) {
  Coverage coverage;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Job job = oracle::RandomJob(seed);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    ExpectGoodPlans(job, &coverage);
    if (HasFailure()) return;
  }
  EXPECT_GT(coverage.messages, 50000);
  EXPECT_GT(coverage.locals, 5000);
  EXPECT_GT(coverage.joined, 5000);
  EXPECT_GT(coverage.split, 10000);
  EXPECT_GT(coverage.idle_ranks, 1000);
}

TEST(RandomPlanTest, NeedsThatSendersDivideArriveWhole) {
  Coverage coverage;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Job job = oracle::RandomLargeJob(seed);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    ExpectGoodPlans(job, &coverage);
    if (HasFailure()) return;
  }
  EXPECT_GT(coverage.shared, 50);
}

TEST(RandomPlanTest, EqualInputsGiveEqualPlans) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Job job = oracle::RandomJob(seed);
    const Job again = oracle::RandomJob(seed);  // equal content in other memory
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    const auto plans = PlanAllRanks(job);
    const auto plans_again = PlanAllRanks(again);
    ASSERT_TRUE(plans.ok() && plans_again.ok());
    for (size_t rank = 0; rank < plans->size(); ++rank) {
      const absl::Status same = oracle::CheckSame((*plans)[rank], (*plans_again)[rank]);
      ASSERT_TRUE(same.ok()) << "rank " << rank << ": " << same;
    }
  }
}

bool Contains(absl::Span<const int> ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

TEST(RandomPlanTest, RanksInNeitherMeshHaveEmptyPlans) {
  int strangers = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Job job = oracle::RandomJob(seed);
    job.node_of_rank.push_back(0);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    const auto plans = PlanAllRanks(job);
    ASSERT_TRUE(plans.ok()) << plans.status();
    for (int rank = 0; rank < job.ranks(); ++rank) {
      bool takes_part = false;
      for (const TensorTransfer& tensor : job.spec.tensors) {
        takes_part = takes_part || Contains(tensor.src.mesh.ranks(), rank) ||
                     Contains(tensor.dst.mesh.ranks(), rank);
      }
      if (takes_part) continue;
      ++strangers;
      const absl::Status empty = oracle::CheckSame((*plans)[static_cast<size_t>(rank)], Plan());
      ASSERT_TRUE(empty.ok()) << "rank " << rank << ": " << empty;
    }
  }
  EXPECT_GT(strangers, 700);
}

}  // namespace
}  // namespace sluice
