// Whether two plans of one rank are the same in every detail.
#ifndef SLUICE_TESTS_PLAN_SAME_PLAN_H_
#define SLUICE_TESTS_PLAN_SAME_PLAN_H_

#include "absl/status/status.h"
#include "plan/plan.h"

namespace sluice::oracle {

// Not OK if the plans differ in any way.
absl::Status CheckSame(const Plan& a, const Plan& b);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_SAME_PLAN_H_
