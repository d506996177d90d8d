// Whether a plan's totals are those of its buckets.
#ifndef SLUICE_TESTS_PLAN_PLAN_STATS_H_
#define SLUICE_TESTS_PLAN_PLAN_STATS_H_

#include <vector>

#include "absl/status/status.h"
#include "plan/delivery.h"
#include "plan/job.h"
#include "plan/plan.h"

namespace sluice::oracle {

// Not OK if a rank's bytes are not what it moved. Not OK if its peaks are not the sums over its
// channels of the max_in_flight largest buckets. Staging is counted anew. A local copy takes none,
// and an owner the whole slot. Any other member takes the larger of what the rank sends of its own
// and what it gets. One chunk that is consecutive in its dense tensor, in the dtype that crosses,
// takes none of this.
absl::Status CheckStats(const Job& job, const std::vector<Plan>& plans,
                        const std::vector<Moved>& moved);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_PLAN_STATS_H_
