// All ranks' plans of a job by hand, which has to be one that can be planned.
#ifndef SLUICE_TESTS_PLAN_PLANS_H_
#define SLUICE_TESTS_PLAN_PLANS_H_

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "plan/job.h"
#include "plan/plan.h"

namespace sluice::oracle {

// By rank.
inline std::vector<Plan> Plans(const Job& job) {
  auto plans = PlanAllRanks(job);
  EXPECT_TRUE(plans.ok()) << plans.status();
  return *std::move(plans);
}

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_PLANS_H_
