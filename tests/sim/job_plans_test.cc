// Plans of whole jobs: ranks that share one have the plan that they would make for themselves.
#include "sim/job_plans.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/families.h"

namespace sluice::sim {
namespace {

RankPlan Direct(const Job& job, int rank) {
  PlanOptions options;
  options.bucket_bytes = job.bucket_bytes;
  options.max_in_flight = job.max_in_flight;
  options.node_of_rank = job.node_of_rank;
  return Summarize(*MakePlan(job.spec, options, rank), job.spec);
}

class FamiliesTest : public testing::TestWithParam<std::string> {};

TEST_P(FamiliesTest, RanksThatShareAPlanWouldMakeTheSame) {
  for (const int ranks : {4, 16, 24, 64}) {
    FamilyOptions options;
    options.ranks = ranks;
    options.peers = 5;
    options.pair_bytes = 3 << 12;
    options.bucket_bytes = 1 << 20;
    const absl::StatusOr<Job> job = MakeFamily(GetParam(), options);
    if (!job.ok() && ranks == 24) continue;  // no power of two
    ASSERT_TRUE(job.ok()) << job.status();
    const JobPlans plans = JobPlans::Make(*job).value();
    int64_t buckets = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const RankPlan direct = Direct(*job, rank);
      EXPECT_TRUE(direct == Turned(plans.plan(rank), plans.turn(rank)))
          << job->name << ", rank " << rank;
      int64_t brought = 0;
      for (const RankBucket& bucket : direct.buckets) {
        buckets += static_cast<int>(bucket.id.fields().src) == rank ? 1 : 0;
        brought += bucket.stay_bytes;
      }
      EXPECT_EQ(brought, plans.needed_bytes(rank)) << job->name << ", rank " << rank;
    }
    EXPECT_EQ(plans.buckets(), buckets);
  }
}

INSTANTIATE_TEST_SUITE_P(, FamiliesTest, testing::ValuesIn(FamilyNames()), [](const auto& param) {
  std::string name = param.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

TEST(JobPlansTest, AWrongPeriodIsNoticed) {
  FamilyOptions options;
  options.ranks = 16;
  Job job = MakeFamily("fsdp-tp", options).value();
  job.period = 1;
  EXPECT_EQ(JobPlans::Make(job).status().code(), absl::StatusCode::kInternal);
}

TEST(JobPlansTest, AutomaticKnobsArePlannedAndTold) {
  FamilyOptions family;
  family.ranks = 16;
  family.pair_bytes = 3 << 20;
  Job job = MakeFamily("all-to-all", family).value();
  job.bucket_bytes = 0;
  job.max_in_flight = 0;
  const JobPlans automatic = JobPlans::Make(job).value();
  job.bucket_bytes = automatic.bucket_bytes();
  job.max_in_flight = automatic.max_in_flight();
  EXPECT_GE(job.bucket_bytes, 256 << 10);
  EXPECT_GE(job.max_in_flight, 1);
  const JobPlans given = JobPlans::Make(job).value();
  EXPECT_EQ(given.buckets(), automatic.buckets());
  EXPECT_TRUE(given.plan(0) == automatic.plan(0));
}

TEST(JobPlansTest, TurnedIdsKeepTheirOrderOfPhases) {
  const BucketId id({.window = 1, .round = 2, .phase = 3, .src = 6, .dst = 1, .n = 4});
  const BucketIdFields turned = TurnedId(id, {3, 8}).fields();
  EXPECT_EQ(turned,
            (BucketIdFields{.window = 1, .round = 2, .phase = 3, .src = 1, .dst = 4, .n = 4}));
  EXPECT_EQ((Turn{3, 8}.Of(-1)), -1);
}

TEST(JobPlansTest, CanBeStopped) {
  FamilyOptions options;
  options.ranks = 256;
  const Job job = MakeFamily("fsdp-tp", options).value();
  int calls = 0;
  const auto stop = [&calls](int, int) { return ++calls < 3; };
  EXPECT_EQ(JobPlans::Make(job, stop).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 3);
}

TEST(FamilyOptionsTest, BadOnesAreRefused) {
  const auto code = [](const char* family, FamilyOptions options) {
    return MakeFamily(family, options).status().code();
  };
  FamilyOptions options;
  EXPECT_EQ(code("none", options), absl::StatusCode::kNotFound);
  options.ranks = 24;
  EXPECT_EQ(code("fsdp-tp", options), absl::StatusCode::kInvalidArgument);
  options.ranks = 1;
  EXPECT_EQ(code("all-to-all", options), absl::StatusCode::kInvalidArgument);
  options.ranks = (1 << 17) + 1;
  EXPECT_EQ(code("peers", options), absl::StatusCode::kInvalidArgument);
  options.ranks = 16;
  options.pair_bytes = 4097;
  EXPECT_EQ(code("all-to-all", options), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("peers", options), absl::StatusCode::kInvalidArgument);
  options.pair_bytes = 4096;
  options.peers = 0;
  EXPECT_EQ(code("peers", options), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::sim
