// Whether all members of every bucket have planned the same bucket.
#ifndef SLUICE_TESTS_PLAN_AGREEMENT_H_
#define SLUICE_TESTS_PLAN_AGREEMENT_H_

#include <vector>

#include "absl/status/status.h"
#include "plan/plan.h"

namespace sluice::oracle {

// Not OK if a plan by itself is not well formed (ids not ascending, a bucket without this rank as a
// member, a channel that does not fit its buckets), or if two members of a bucket differ in its
// bytes, members, channel or chunks, or if a member does not know it. `plans` by rank.
absl::Status CheckAgreement(const std::vector<Plan>& plans);

// Not OK if the plans differ in any way.
absl::Status CheckSame(const Plan& a, const Plan& b);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_AGREEMENT_H_
