// Small transfers of contributions and to replicas, whose plans can be said in a sentence.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/channel_content.h"
#include "plan/job.h"
#include "plan/plan.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

using oracle::ContentOf;
using oracle::Job;
using oracle::MakeLayout;
using oracle::MakeTensor;
using oracle::Plans;
using oracle::RankRange;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Job MakeJob(int ranks, std::vector<int64_t> shape, const Layout& src, const Layout& dst) {
  Job job;
  job.node_of_rank.assign(static_cast<size_t>(ranks), 0);
  job.spec.tensors.push_back(MakeTensor("g", std::move(shape), DType::kF32, src, dst));
  return job;
}

TEST(ReductionPlanTest, OneBucketTakesContributionsAndSendsTheSum) {
  const Job job = MakeJob(3, {10, 4}, MakeLayout({2}, {1, 0}, "P(sum)"), MakeLayout({1}, {2}, "R"));
  const std::vector<Plan> plans = Plans(job);
  for (const Plan& plan : plans) {
    ASSERT_THAT(plan.buckets, SizeIs(1));
    EXPECT_EQ(plan.buckets[0].bytes, 160);
    EXPECT_EQ(plan.buckets[0].contribution_bytes, 160);
    const auto content = ContentOf(plan, plan.channels[0]);
    EXPECT_THAT(content.members,
                ElementsAre(Member{1, Role::kOwner, -1}, Member{2, Role::kDestination, 0},
                            Member{0, Role::kContributor, -1}));
    EXPECT_THAT(content.contributions, ElementsAre(0, 2));
    EXPECT_THAT(content.levels, ElementsAre(Level{2, ReduceOp::kSum}));
  }
  EXPECT_EQ(plans[0].sent_bytes, 160);
  EXPECT_EQ(plans[1].sent_bytes, 160);
  EXPECT_EQ(plans[2].received_bytes, 160);
  EXPECT_EQ(SlotBytes(plans[1], plans[1].buckets[0]), 320);
  EXPECT_EQ(plans[1].peak_bytes_without_budget, 320);
}

// A target that shares the node, and is not alone against many sources, adds up itself.
TEST(ReductionPlanTest, TheTargetOfTheNodeIsTheOwner) {
  Job job = MakeJob(4, {10, 4}, MakeLayout({2}, {1, 0}, "P(sum)"), MakeLayout({2}, {2, 3}, "S(0)"));
  const std::vector<Plan> plans = Plans(job);
  for (const int rank : {2, 3}) {
    const Plan& plan = plans[static_cast<size_t>(rank)];
    ASSERT_THAT(plan.buckets, SizeIs(1));
    const auto content = ContentOf(plan, plan.channels[0]);
    EXPECT_THAT(content.members,
                ElementsAre(Member{rank, Role::kOwner | Role::kDestination, -1},
                            Member{1, Role::kContributor, -1}, Member{0, Role::kContributor, -1}));
    EXPECT_THAT(content.contributions, ElementsAre(1, 2));
    EXPECT_EQ(plan.channels[0].own_contribution, -1);
    const BucketIdFields id = plan.buckets[0].id.fields();
    EXPECT_EQ(id.src, 1);
    EXPECT_EQ(id.dst, static_cast<uint64_t>(rank));
    EXPECT_EQ(plan.received_bytes, 80);
    EXPECT_EQ(plan.sent_bytes, 0);
  }
  EXPECT_EQ(plans[0].channels[0].own_contribution, 1);
  // Not where a contribution is elsewhere.
  job.node_of_rank[0] = 1;
  for (const Plan& plan : Plans(job)) {
    for (const Channel& channel : plan.channels) {
      const auto content = ContentOf(plan, channel);
      EXPECT_EQ(content.members[0].role, Role::kOwner);
    }
  }
}

// On two nodes: rank 2 owns all of so little, and rank 0 adds what its node has and gets the
// result.
TEST(ReductionPlanTest, WhoAddsForAnOwnerMayNeedTheResult) {
  Job job = MakeJob(4, {8}, MakeLayout({4}, RankRange(0, 4), "P(sum)"),
                    MakeLayout({4}, RankRange(0, 4), "R"));
  job.node_of_rank = {0, 0, 1, 1};
  for (const Plan& plan : Plans(job)) {
    ASSERT_THAT(plan.channels, SizeIs(1));
    const auto content = ContentOf(plan, plan.channels[0]);
    const Role needs = Role::kContributor | Role::kDestination;
    EXPECT_THAT(content.members, ElementsAre(Member{2, Role::kOwner | Role::kDestination, -1},
                                             Member{0, needs | Role::kOwner, 0},
                                             Member{1, needs, 1}, Member{3, needs, 0}));
    EXPECT_THAT(content.contributions, ElementsAre(1, 2, 0, 3));
  }
}

TEST(ReductionPlanTest, AreasShareTheSlot) {
  EXPECT_EQ(ReductionAreaBytes(16, 1), 8);
  EXPECT_EQ(ReductionAreaBytes(15, 1), 0);
  EXPECT_EQ(ReductionAreaBytes(100, 1), 48);
  EXPECT_EQ(ReductionAreaBytes(100, 3), 24);
  EXPECT_EQ(ReductionAreaBytes(int64_t{8} << 20, 1), int64_t{4} << 20);
}

TEST(ReductionPlanTest, BucketsTooSmallForTheLevelsAreRefused) {
  Job job = MakeJob(5, {8}, MakeLayout({2, 2}, RankRange(0, 4), "P(sum),P(max)"),
                    MakeLayout({1}, {4}, "R"));
  job.bucket_bytes = 23;  // an accumulator for each level and a contribution: 3 x 8 bytes
  const absl::Status status = PlanAllRanks(job).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor 'g'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("at least 24 bytes, not 23"));
  job.bucket_bytes = 24;
  EXPECT_TRUE(PlanAllRanks(job).ok());
}

TEST(WindowPlanTest, LowerWindowsComeFirst) {
  const Layout src = MakeLayout({1}, {0}, "R");
  const Layout dst = MakeLayout({1}, {1}, "R");
  Job job = MakeJob(2, {100}, src, dst);
  job.spec.tensors[0].window = 3;
  job.spec.tensors.push_back(MakeTensor("h", {100}, DType::kF32, src, dst));
  job.spec.tensors.push_back(MakeTensor("i", {100}, DType::kF32, src, dst));
  job.spec.tensors[2].window = 3;
  job.bucket_bytes = 1000;
  const Plan plan = Plans(job)[0];
  ASSERT_THAT(plan.buckets, SizeIs(2));  // not joined across windows
  EXPECT_EQ(plan.buckets[0].id.fields().window, 0u);
  EXPECT_EQ(plan.buckets[0].bytes, 400);
  EXPECT_EQ(plan.buckets[1].id.fields().window, 3u);
  EXPECT_EQ(plan.buckets[1].bytes, 800);
  EXPECT_THAT(plan.channels, SizeIs(1));
}

}  // namespace
}  // namespace sluice
