// How much staging one rank's plan could hold at once if there were no budget.
#ifndef SLUICE_SRC_PLAN_STAGING_H_
#define SLUICE_SRC_PLAN_STAGING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "plan/plan.h"
#include "sluice/transfer.h"

namespace sluice {

// Adds the peaks to a plan that is otherwise complete: the largest buckets of each channel, as many
// as it may have in flight. `local_shapes`: of the dense local tensor that each region is of; of
// the source's where a region is of both sides.
void AddPeaks(const TransferSpec& spec, int max_in_flight,
              absl::Span<const absl::Span<const int64_t>> local_shapes, Plan* plan);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_STAGING_H_
