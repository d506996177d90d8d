// Whether all members of every bucket have planned the same bucket.
#ifndef SLUICE_TESTS_PLAN_AGREEMENT_H_
#define SLUICE_TESTS_PLAN_AGREEMENT_H_

#include <vector>

#include "absl/status/status.h"
#include "plan/plan.h"

namespace sluice::oracle {

// Not OK if ids do not ascend, if a member does not know its bucket, or if a bucket's id does not
// name its ends. Not OK if two members of a bucket differ in its bytes, members, parents, roles,
// contributions, levels or chunks. `plans` by rank.
absl::Status CheckAgreement(const std::vector<Plan>& plans);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_AGREEMENT_H_
