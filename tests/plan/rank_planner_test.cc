// One rank's plan from tables that are empty, that others have filled, or that it has filled.
#include "plan/rank_planner.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "plan/job.h"
#include "plan/job_planner.h"
#include "plan/job_tables.h"
#include "plan/plan.h"
#include "plan/same_plan.h"

namespace sluice {
namespace {

using oracle::Job;

void ExpectTheJobPlannersPlans(const Job& job) {
  const PlanOptions options = job.options();
  JobPlanner planner(job.spec, options);
  JobTables shared(job.spec, options);
  ASSERT_TRUE(shared.status.ok()) << shared.status;
  for (int rank = 0; rank < job.ranks(); ++rank) {
    const auto expected = planner.PlanOf(rank);
    ASSERT_TRUE(expected.ok()) << expected.status();
    JobTables own(job.spec, options);
    for (JobTables* tables : {&own, &shared, &shared}) {
      const auto plan = PlanOneRank(tables, rank);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const absl::Status same = oracle::CheckSame(*expected, *plan);
      ASSERT_TRUE(same.ok()) << "rank " << rank << ": " << same;
    }
  }
}

TEST(RankPlannerTest, GivesTheJobPlannersPlan) {
  for (uint64_t seed = 1000; seed < 1100; ++seed) {
    const Job job = seed % 4 == 0 ? oracle::RandomLargeJob(seed) : oracle::RandomJob(seed);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    ExpectTheJobPlannersPlans(job);
    if (HasFatalFailure()) return;
  }
}

TEST(RankPlannerTest, ARankWithoutAPartHasAnEmptyPlan) {
  Job job;
  job.node_of_rank = {0, 0, 0};
  job.spec.tensors.push_back(oracle::MakeTensor("weight", {64}, DType::kF32,
                                                oracle::MakeLayout({1}, {0}, "R"),
                                                oracle::MakeLayout({1}, {2}, "R")));
  JobTables tables(job.spec, job.options());
  ASSERT_TRUE(tables.status.ok()) << tables.status;
  const auto idle = PlanOneRank(&tables, 1);
  ASSERT_TRUE(idle.ok()) << idle.status();
  EXPECT_TRUE(idle->buckets.empty());
  EXPECT_EQ(idle->sent_bytes + idle->received_bytes + idle->local_bytes, 0);
  const auto target = PlanOneRank(&tables, 2);
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->received_bytes, 256);
}

}  // namespace
}  // namespace sluice
