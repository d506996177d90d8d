// Finds one rank's buckets that take copies, and how much staging they could hold at once if there
// were no budget.
#ifndef SLUICE_SRC_PLAN_STAGING_H_
#define SLUICE_SRC_PLAN_STAGING_H_

#include <cstdint>

#include "absl/types/span.h"
#include "plan/plan.h"
#include "sluice/transfer.h"

namespace sluice {

// Adds copies and staging to the buckets of a plan that is otherwise complete. Adds the peaks too:
// each channel counts with its `max_in_flight` largest buckets. `local_shapes`: for each region,
// the shape of its dense local tensor; for a region of both sides, of the source's.
void AddStaging(const TransferSpec& spec, int max_in_flight,
                absl::Span<const absl::Span<const int64_t>> local_shapes, Plan* plan);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_STAGING_H_
