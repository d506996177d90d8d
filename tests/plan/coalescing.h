// Whether chunks are joined and split as well as bucket_bytes allows.
#ifndef SLUICE_TESTS_PLAN_COALESCING_H_
#define SLUICE_TESTS_PLAN_COALESCING_H_

#include <vector>

#include "absl/status/status.h"
#include "plan/job.h"
#include "plan/plan.h"

namespace sluice::oracle {

// What one party carries of one tensor is small, large or in between. Small: it fits a bucket and
// has less than 256 KiB. Large: it fits no bucket, or no piece of its pipeline. A reduction counts
// contributions, of which a bucket has room for as many bytes as ReductionAreaBytes says. Not OK if
// * a bucket's slot is larger than bucket_bytes, or its areas do not hold what goes there;
// * two neighbouring buckets of small parts would fit in one; where the job does not join: a bucket
//   has several chunks;
// * a large part has more pieces than it needs, or unequal ones but for the last, or is not alone;
// * a part that several ranks need takes another tree than ChooseFanout says.
absl::Status CheckBucketSizes(const Job& job, const std::vector<Plan>& plans);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_COALESCING_H_
