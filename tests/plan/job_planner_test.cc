// Plans of many ranks from one planner, and what keeps them small in large jobs.
#include "plan/job_planner.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "plan/checks.h"
#include "plan/job.h"
#include "plan/plan.h"

namespace sluice {
namespace {

using oracle::Job;
using oracle::MakeLayout;
using oracle::MakeTensor;
using oracle::RankRange;

// Ranks in an order in which those that are alike do not come one after the other, and all twice.
void ExpectPlansOfOneRank(const Job& job, int64_t shared_bytes_max) {
  const PlanOptions options = job.options();
  JobPlanner planner(job.spec, options, shared_bytes_max);
  for (int i = 0; i < 2 * job.ranks(); ++i) {
    const int rank = i % 2 == 0 ? i / 2 : job.ranks() - 1 - i / 2;
    const auto alone = MakePlan(job.spec, options, rank);
    const auto shared = planner.PlanOf(rank);
    ASSERT_TRUE(alone.ok() && shared.ok()) << alone.status() << shared.status();
    const absl::Status same = oracle::CheckSame(*alone, *shared);
    ASSERT_TRUE(same.ok()) << "rank " << rank << ": " << same;
  }
}

TEST(JobPlannerTest, GivesEachRankThePlanItMakesAlone) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Job job = seed % 4 == 0 ? oracle::RandomLargeJob(seed) : oracle::RandomJob(seed);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    ExpectPlansOfOneRank(job, JobPlanner::kSharedBytesMax);
    if (HasFatalFailure()) return;
  }
}

TEST(JobPlannerTest, WhatIsSharedMayBeForgottenAtAnyTime) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Job job = seed % 4 == 0 ? oracle::RandomLargeJob(seed) : oracle::RandomJob(seed);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    ExpectPlansOfOneRank(job, 0);
    ExpectPlansOfOneRank(job, 4000);
    if (HasFatalFailure()) return;
  }
}

// `sources` hold replicas of a tensor of `rows` rows, 512 bytes each, that `replicas` times
// `parts` targets need.
Job BroadcastJob(int64_t rows, int sources, int replicas, int parts) {
  Job job;
  const int targets = replicas * parts;
  job.node_of_rank = RankRange(0, sources + targets);
  job.spec.tensors.push_back(MakeTensor(
      "weight", {rows, 64}, DType::kF64, MakeLayout({sources}, RankRange(0, sources), "R"),
      MakeLayout({replicas, parts}, RankRange(sources, targets), "R,S(0)")));
  return job;
}

// The destinations of the largest party; checks that everybody gets everything.
int64_t LargestParty(const Job& job) {
  const std::vector<Plan> plans = oracle::Plans(job);
  for (const absl::Status& status :
       {oracle::CheckAgreement(plans), oracle::CheckChannels(job, plans)}) {
    EXPECT_TRUE(status.ok()) << status;
  }
  const TensorTransfer& tensor = job.spec.tensors[0];
  for (const int rank : tensor.dst.mesh.ranks()) {
    const int64_t parts = tensor.dst.mesh.sizes()[1];
    EXPECT_EQ(plans[static_cast<size_t>(rank)].received_bytes * parts, tensor.shape[0] * 512);
  }
  int64_t largest = 0;
  for (const Plan& plan : plans) {
    for (const Channel& channel : plan.channels) {
      largest = std::max<int64_t>(largest, channel.member_count - 1);
    }
  }
  return largest;
}

TEST(JobPlannerTest, SourcesDivideVeryManyTargets) {
  EXPECT_EQ(LargestParty(BroadcastJob(320, 8, 64, 1)), 64);
  EXPECT_EQ(LargestParty(BroadcastJob(320, 8, 65, 1)), 33);
  EXPECT_EQ(LargestParty(BroadcastJob(320, 8, 256, 1)), 64);
  // As many as there are sources, or as parts of the tensor leave of them.
  EXPECT_EQ(LargestParty(BroadcastJob(320, 2, 256, 1)), 128);
  EXPECT_EQ(LargestParty(BroadcastJob(320, 4, 200, 2)), 100);
  EXPECT_EQ(LargestParty(BroadcastJob(320, 1, 200, 1)), 200);
}

TEST(JobPlannerTest, NoSourceGivesMoreThanATargetReceives) {
  constexpr int64_t kRoundingBytes = 128 << 10;  // smaller pieces are not worth a message
  for (const int parts : {1, 2, 3}) {
    for (const int sources : {2, 5, 8}) {
      SCOPED_TRACE(absl::StrCat(sources, " sources, ", parts, " parts"));
      const Job job = BroadcastJob(8192, sources, 150, parts);
      const std::vector<Plan> plans = oracle::Plans(job);
      int64_t received = 0;
      for (const Plan& plan : plans) received = std::max(received, plan.received_bytes);
      // With fewer sources than parts each has its share of all of it.
      const int64_t bound = std::max<int64_t>(received, received * parts / sources);
      for (int rank = 0; rank < sources; ++rank) {
        const Plan& plan = plans[static_cast<size_t>(rank)];
        int64_t gives = 0;  // once or twice, as whoever passes on does
        for (const Bucket& bucket : plan.buckets) gives += bucket.bytes;
        EXPECT_LE(gives, bound + kRoundingBytes);
      }
    }
  }
}

}  // namespace
}  // namespace sluice
