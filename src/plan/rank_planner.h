// Assembles one rank's plan: routes of every tensor, joined into buckets, named and ordered.
#ifndef SLUICE_SRC_PLAN_RANK_PLANNER_H_
#define SLUICE_SRC_PLAN_RANK_PLANNER_H_

#include "absl/status/statusor.h"
#include "plan/job_tables.h"
#include "plan/plan.h"

namespace sluice {

// Fills the tables with what the plan needs of them.
absl::StatusOr<Plan> PlanOneRank(JobTables* tables, int rank);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_RANK_PLANNER_H_
