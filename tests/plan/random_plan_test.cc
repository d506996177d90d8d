// Thousands of random transfers, planned by every rank and carried out by brute force.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "plan/checks.h"
#include "plan/coverage.h"
#include "plan/job.h"
#include "plan/plan.h"

namespace sluice {
namespace {

using oracle::Coverage;
using oracle::Job;

constexpr uint64_t kSeeds = 1000;

// Plans `job` for all ranks, carries it out, and checks all that can be checked.
void ExpectGoodPlans(const Job& job, Coverage* coverage) {
  const auto plans = PlanAllRanks(job).value();
  std::vector<oracle::Moved> moved;
  const absl::Status delivered = Deliver(job, plans, &moved);
  const absl::Status agreed = oracle::CheckAgreement(plans);
  const absl::Status linked = oracle::CheckChannels(job, plans);
  const absl::Status sized = CheckBucketSizes(job, plans);
  const absl::Status counted = CheckStats(job, plans, moved);
  EXPECT_TRUE(delivered.ok()) << delivered;
  EXPECT_TRUE(agreed.ok()) << agreed;
  EXPECT_TRUE(linked.ok()) << linked;
  EXPECT_TRUE(sized.ok()) << sized;
  EXPECT_TRUE(counted.ok()) << counted;
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    coverage->Count(static_cast<int>(rank), plans[rank]);
  }
}

// Does so for jobs 0, 1, .. of a family, up to the first that fails.
Coverage ExpectGoodPlansOf(Job (*random_job)(uint64_t seed), uint64_t seeds) {
  Coverage coverage;
  for (uint64_t seed = 0; seed < seeds && !testing::Test::HasFailure(); ++seed) {
    const Job job = random_job(seed);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    ExpectGoodPlans(job, &coverage);
  }
  return coverage;
}

TEST(RandomPlanTest, PlansDeliverAgreeAndCount) {
  const Coverage coverage = ExpectGoodPlansOf(oracle::RandomJob, kSeeds);
  if (HasFailure()) return;
  EXPECT_GT(coverage.messages, 10000);
  EXPECT_GT(coverage.locals, 1250);
  EXPECT_GT(coverage.joined, 500);
  EXPECT_GT(coverage.split, 2500);
  EXPECT_GT(coverage.idle_ranks, 250);
  EXPECT_GT(coverage.reductions, 1250);
  EXPECT_GT(coverage.deep_reductions, 250);
  EXPECT_GT(coverage.gathered_reductions, 25);
  EXPECT_GT(coverage.owners_that_only_need, 250);
  EXPECT_GT(coverage.owners_that_need, 250);
  EXPECT_GT(coverage.contributors_that_need, 250);
  EXPECT_GT(coverage.contributors_alone, 250);
  EXPECT_GT(coverage.windows, 250);
}

// Of these, senders divide needs between them, and ranks pass on what others need too.
TEST(RandomPlanTest, LargeTensorsArriveWhole) {
  const Coverage coverage =
      ExpectGoodPlansOf(oracle::RandomLargeJob, static_cast<uint64_t>(oracle::Thinned(200)));
  if (HasFailure()) return;
  EXPECT_GT(coverage.divided, oracle::Thinned(50));
  EXPECT_GT(coverage.stars, oracle::Thinned(15));
  EXPECT_GT(coverage.chains, oracle::Thinned(100));
  EXPECT_GT(coverage.trees, oracle::Thinned(20));
  EXPECT_GT(coverage.reductions, oracle::Thinned(100));
}

// Of these, sums of nodes cross in place of contributions.
TEST(RandomPlanTest, ReductionsOverSeveralNodes) {
  const Coverage coverage = ExpectGoodPlansOf(oracle::RandomReductionJob, 80);
  if (HasFailure()) return;
  EXPECT_GT(coverage.reductions, 1000);
  EXPECT_GT(coverage.gathered_reductions, 400);
  EXPECT_GT(coverage.adders_that_need, 150);
}

bool HasReplicatedTargets(const Job& job) {
  for (const TensorTransfer& tensor : job.spec.tensors) {
    for (size_t m = 0; m < tensor.dst.placements.size(); ++m) {
      if (tensor.dst.placements[m].kind == Placement::Kind::kReplicate &&
          tensor.dst.mesh.sizes()[m] > 1) {
        return true;
      }
    }
  }
  return false;
}

// Without a reduction, a bucket has a source and one destination.
void ExpectNoRelays(const std::vector<Plan>& plans) {
  for (const Plan& plan : plans) {
    for (const Channel& channel : plan.channels) {
      if (channel.contribution_count > 0) continue;
      EXPECT_LE(channel.member_count, 2);
    }
  }
}

bool HasReductions(const Job& job) {
  return std::any_of(job.spec.tensors.begin(), job.spec.tensors.end(), IsReduced);
}

bool AreSame(const std::vector<Plan>& a, const std::vector<Plan>& b) {
  for (size_t rank = 0; rank < a.size(); ++rank) {
    if (!oracle::CheckSame(a[rank], b[rank]).ok()) return false;
  }
  return a.size() == b.size();
}

TEST(RandomPlanTest, WithoutRelaysEachIsServedAlone) {
  Coverage coverage;
  int alike = 0, different = 0;
  const auto seeds = static_cast<uint64_t>(oracle::Thinned(800));
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Job job = seed % 4 == 0 ? oracle::RandomLargeJob(seed) : oracle::RandomJob(seed);
    const auto relaying = PlanAllRanks(job);
    job.relay = false;
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    ExpectGoodPlans(job, &coverage);
    const auto naive = PlanAllRanks(job);
    ASSERT_TRUE(relaying.ok() && naive.ok());
    ExpectNoRelays(*naive);
    const bool same = AreSame(*relaying, *naive);
    const bool may_differ = HasReplicatedTargets(job) || HasReductions(job);
    EXPECT_TRUE(same || may_differ);
    if (HasFailure()) return;
    alike += may_differ ? 0 : 1;
    different += same ? 0 : 1;
  }
  EXPECT_GT(alike, oracle::Thinned(200));
  EXPECT_GT(different, oracle::Thinned(30));
  EXPECT_GT(coverage.divided, oracle::Thinned(30));
  EXPECT_GT(coverage.reductions, oracle::Thinned(1000));
}

// The tensors and elements of all chunks of a rank's plan, each party's in order.
std::vector<std::vector<int64_t>> ChunksOf(const Plan& plan) {
  std::vector<std::vector<int64_t>> chunks;
  for (const Bucket& bucket : plan.buckets) {
    const BucketIdFields id = bucket.id.fields();
    for (int32_t c = 0; c < bucket.chunk_count; ++c) {
      const Chunk& chunk = plan.chunks[static_cast<size_t>(bucket.first_chunk + c)];
      chunks.push_back({static_cast<int64_t>(id.window), static_cast<int64_t>(id.src),
                        static_cast<int64_t>(id.dst), static_cast<int64_t>(id.n), chunk.tensor,
                        chunk.begin, chunk.end});
    }
  }
  std::sort(chunks.begin(), chunks.end());
  return chunks;
}

TEST(RandomPlanTest, WithoutJoiningEachChunkIsABucket) {
  Coverage coverage;
  int more = 0;
  const auto seeds = static_cast<uint64_t>(oracle::Thinned(800));
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Job job = seed % 4 == 0   ? oracle::RandomLargeJob(seed)
              : seed % 4 == 1 ? oracle::RandomReductionJob(seed)
                              : oracle::RandomJob(seed);
    const auto joined = PlanAllRanks(job);
    job.coalesce = false;
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    ExpectGoodPlans(job, &coverage);
    const auto apart = PlanAllRanks(job);
    ASSERT_TRUE(joined.ok() && apart.ok());
    for (size_t rank = 0; rank < apart->size(); ++rank) {
      const Plan& plan = (*apart)[rank];
      EXPECT_EQ(plan.buckets.size(), plan.chunks.size());
      EXPECT_EQ(ChunksOf(plan), ChunksOf((*joined)[rank]));
      more += plan.buckets.size() > (*joined)[rank].buckets.size() ? 1 : 0;
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(coverage.joined, 0);
  EXPECT_GT(more, oracle::Thinned(300));
  EXPECT_GT(coverage.reductions, oracle::Thinned(1000));
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
    const auto plans = PlanAllRanks(job).value();
    for (int rank = 0; rank < job.ranks(); ++rank) {
      bool takes_part = false;
      for (const TensorTransfer& tensor : job.spec.tensors) {
        takes_part = takes_part || Contains(tensor.src.mesh.ranks(), rank) ||
                     Contains(tensor.dst.mesh.ranks(), rank);
      }
      if (takes_part) continue;
      ++strangers;
      const absl::Status empty = oracle::CheckSame(plans[static_cast<size_t>(rank)], Plan());
      ASSERT_TRUE(empty.ok()) << "rank " << rank << ": " << empty;
    }
  }
  EXPECT_GT(strangers, 700);
}

}  // namespace
}  // namespace sluice
