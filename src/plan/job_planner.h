// Plans of many ranks of one job, which share what is alike for all of them.
#ifndef SLUICE_SRC_PLAN_JOB_PLANNER_H_
#define SLUICE_SRC_PLAN_JOB_PLANNER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "plan/plan.h"
#include "sluice/transfer.h"

namespace sluice {

struct JobTables;

// Tables that plans share are made when the first plan needs them, and kept for the others up to a
// limit. From one plan to the next about `shared_bytes_max` bytes are kept at most.
//
// Thread: one at a time. Threads that plan side by side have a planner each.
class JobPlanner {
 public:
  static constexpr int64_t kSharedBytesMax = int64_t{256} << 20;

  // `spec`, which ValidateSpec has accepted, and the list in `options` must outlive this object.
  JobPlanner(const TransferSpec& spec, const PlanOptions& options,
             int64_t shared_bytes_max = kSharedBytesMax);
  ~JobPlanner();

  // The same as MakePlan gives. Fastest where ranks that are alike come one after the other.
  absl::StatusOr<Plan> PlanOf(int rank);

 private:
  std::unique_ptr<JobTables> tables_;
  const int64_t shared_bytes_max_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_JOB_PLANNER_H_
