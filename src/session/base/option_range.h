// Whether a number that a caller gives is in its range.
#ifndef SLUICE_SRC_SESSION_BASE_OPTION_RANGE_H_
#define SLUICE_SRC_SESSION_BASE_OPTION_RANGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sluice {

// To one HTTP server. Each has a handle of its own from the start.
inline constexpr int kConnectionsMax = 4096;

// InvalidArgument names the option.
inline absl::Status CheckAtLeast(absl::string_view name, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, " but must be at least ", least));
}
inline absl::Status CheckAtMost(absl::string_view name, int64_t value, int64_t most) {
  if (value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, " but must be at most ", most));
}

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_OPTION_RANGE_H_
