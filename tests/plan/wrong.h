// How the checks of a plan say what is wrong.
#ifndef SLUICE_TESTS_PLAN_WRONG_H_
#define SLUICE_TESTS_PLAN_WRONG_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sluice::oracle {

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_WRONG_H_
