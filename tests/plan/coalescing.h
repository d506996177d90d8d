// Whether chunks are joined and split as well as bucket_bytes allows.
#ifndef SLUICE_TESTS_PLAN_COALESCING_H_
#define SLUICE_TESTS_PLAN_COALESCING_H_

#include <vector>

#include "absl/status/status.h"
#include "plan/job.h"
#include "plan/plan.h"

namespace sluice::oracle {

// Between two ranks in one direction, the part of a tensor is either small (it fits a bucket and
// has less than 256 KiB), large (it fits no bucket) or in between. Not OK if
//  * a bucket is larger than bucket_bytes,
//  * two neighbouring buckets of small parts would fit in one,
//  * a large part has more pieces than it needs, or unequal ones but for the last, or is not alone.
absl::Status CheckBucketSizes(const Job& job, const std::vector<Plan>& plans);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_COALESCING_H_
