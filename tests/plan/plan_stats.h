// Whether a plan's totals are those of its buckets.
#ifndef SLUICE_TESTS_PLAN_PLAN_STATS_H_
#define SLUICE_TESTS_PLAN_PLAN_STATS_H_

#include <vector>

#include "absl/status/status.h"
#include "plan/delivery.h"
#include "plan/job.h"
#include "plan/plan.h"

namespace sluice::oracle {

// Not OK if a rank's bytes are not what it moved, or its peaks are not the sums over its channels
// of the max_in_flight largest buckets. Staging is counted anew: none for a local copy, the whole
// slot at an owner, else the larger of what the rank sends of its own and what it gets, of which
// one chunk that is consecutive in its dense tensor, in the dtype that crosses, takes none.
absl::Status CheckStats(const Job& job, const std::vector<Plan>& plans,
                        const std::vector<Moved>& moved);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_PLAN_STATS_H_
