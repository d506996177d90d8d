// Small transfers whose plans can be said in a sentence.
#include "plan/plan.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/job.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

using oracle::Job;
using oracle::MakeLayout;
using oracle::MakeTensor;
using oracle::Plans;
using oracle::RankRange;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Job MakeJob(int ranks, std::vector<TensorTransfer> tensors) {
  Job job;
  job.node_of_rank.assign(static_cast<size_t>(ranks), 0);
  job.spec.tensors = std::move(tensors);
  return job;
}

TEST(PlanTest, OneToOneIsOneBucket) {
  const Job job = MakeJob(2, {MakeTensor("w", {10, 4}, DType::kF32, MakeLayout({1}, {0}, "R"),
                                         MakeLayout({1}, {1}, "R"))});
  const std::vector<Plan> plans = Plans(job);
  ASSERT_THAT(plans[0].buckets, SizeIs(1));
  EXPECT_EQ(plans[0].buckets[0].role, Role::kSource);
  EXPECT_EQ(plans[0].buckets[0].bytes, 160);
  EXPECT_EQ(plans[0].sent_bytes, 160);
  EXPECT_EQ(plans[0].peak_buckets_without_budget, 1);
  EXPECT_EQ(plans[0].peak_bytes_without_budget, 0);  // the whole tensor: contiguous
  ASSERT_THAT(plans[1].buckets, SizeIs(1));
  EXPECT_EQ(plans[1].buckets[0].role, Role::kDestination);
  EXPECT_EQ(plans[1].received_bytes, 160);
}

TEST(PlanTest, NothingToMove) {
  const Job no_tensors = MakeJob(2, {});
  const Job no_elements =
      MakeJob(2, {MakeTensor("w", {0, 4}, DType::kF32, MakeLayout({2}, {0, 1}, "S(0)"),
                             MakeLayout({2}, {1, 0}, "S(1)"))});
  for (const Job& job : {no_tensors, no_elements}) {
    for (const Plan& plan : Plans(job)) {
      EXPECT_THAT(plan.buckets, IsEmpty());
      EXPECT_THAT(plan.channels, IsEmpty());
      EXPECT_EQ(plan.peak_buckets_without_budget, 0);
    }
  }
}

// Ranks take turns: within a round, no two of the first sends go to one destination.
TEST(PlanTest, FirstBucketsOfAllToAllGoToDistinctRanks) {
  const Job job =
      MakeJob(8, {MakeTensor("w", {64, 64}, DType::kF32, MakeLayout({8}, RankRange(0, 8), "S(0)"),
                             MakeLayout({8}, RankRange(0, 8), "S(1)"))});
  const std::vector<Plan> plans = Plans(job);
  std::vector<int> received(8);
  for (const Plan& plan : plans) {
    for (const Bucket& bucket : plan.buckets) {
      if (bucket.role != Role::kSource) continue;
      ++received[static_cast<size_t>(plan.channels[static_cast<size_t>(bucket.channel)].dst)];
      break;
    }
  }
  EXPECT_THAT(received, ::testing::Each(1));
}

// The destinations of each source's parties, by source.
std::map<int, std::set<std::vector<int>>> PartiesOf(const Job& job) {
  std::map<int, std::set<std::vector<int>>> parties;
  for (const Plan& plan : Plans(job)) {
    for (const Channel& channel : plan.channels) {
      std::vector<int> ranks;
      for (int32_t i = 1; i < channel.member_count; ++i) {
        ranks.push_back(plan.members[static_cast<size_t>(channel.first_member + i)].rank);
      }
      if (channel.src != channel.dst) parties[channel.src].insert(ranks);
    }
  }
  return parties;
}

// Four sources, six replicas on nodes of two: a job for chains of three nodes, each of two stripes.
Job ReplicatingJob(std::vector<int> dst_ranks) {
  Job job =
      MakeJob(10, {MakeTensor("w", {1 << 20}, DType::kF32, MakeLayout({4}, RankRange(0, 4), "S(0)"),
                              MakeLayout({6}, std::move(dst_ranks), "R"))});
  for (int rank = 0; rank < 10; ++rank) {
    job.node_of_rank[static_cast<size_t>(rank)] = rank / 2;
  }
  return job;
}

TEST(PlanTest, WithFewSlotsTheChainsOfAllSourcesCoincide) {
  Job job = ReplicatingJob(RankRange(4, 6));
  for (const int64_t slots : {1, 5}) {
    job.slots = slots;
    const auto parties = PartiesOf(job);
    EXPECT_THAT(parties, SizeIs(4));
    for (const auto& [src, dsts] : parties) {
      EXPECT_THAT(dsts, testing::ElementsAre(testing::ElementsAre(4, 5, 6, 7, 8, 9),
                                             testing::ElementsAre(5, 4, 7, 6, 9, 8)))
          << "source " << src;
    }
  }
  for (const int64_t slots : {0, 6}) {
    job.slots = slots;
    std::set<std::vector<int>> different;
    for (const auto& [src, dsts] : PartiesOf(job)) different.insert(dsts.begin(), dsts.end());
    EXPECT_GT(different.size(), 2u) << slots;
  }
}

// A source that passes on what others send would have to wait for its turn in their chains.
TEST(PlanTest, ChainsOfSourcesAmongTheDestinationsNeverCoincide) {
  Job few = ReplicatingJob(RankRange(0, 6));
  few.slots = 4;
  EXPECT_EQ(PartiesOf(few), PartiesOf(ReplicatingJob(RankRange(0, 6))));
}

// More buckets than ids can count must be an error, at once: not a plan that fills memory.
TEST(PlanTest, TooManyBucketsAreRefused) {
  Job job = MakeJob(2, {MakeTensor("w", {int64_t{1} << 50}, DType::kF64, MakeLayout({1}, {0}, "R"),
                                   MakeLayout({1}, {1}, "R"))});
  job.bucket_bytes = 16;
  EXPECT_EQ(PlanAllRanks(job).status().code(), absl::StatusCode::kResourceExhausted);
}

// Experts each have ranks of their own: many pairs of layouts, of which a bucket needs to name only
// those that make parties of more than two ranks.
TEST(PlanTest, ManyPairsOfLayouts) {
  Job job = MakeJob(128, {});
  for (int i = 0; i < 60 * 60; ++i) {
    job.spec.tensors.push_back(MakeTensor("expert", {4}, DType::kF32,
                                          MakeLayout({2}, {i / 60, 60 + i % 60}, "S(0)"),
                                          MakeLayout({2}, {126, 127}, "S(0)")));
  }
  EXPECT_TRUE(MakePlan(job.spec, job.options(), 126).ok());
  for (TensorTransfer& tensor : job.spec.tensors) {
    tensor.dst.placements = {Placement::Replicate()};
  }
  EXPECT_EQ(MakePlan(job.spec, job.options(), 126).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace sluice
