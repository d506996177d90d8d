// What a session's options come to, or why they cannot work.
#ifndef SLUICE_SRC_SESSION_LIMITS_H_
#define SLUICE_SRC_SESSION_LIMITS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "sluice/session.h"

namespace sluice {

// The number of equal slots that the budget comes to; 0 if it sets no limit. InvalidArgument, with
// the breakdown, if an option is out of range or the limits leave no room for one bucket.
absl::StatusOr<int64_t> ResolveSlots(const SessionOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_LIMITS_H_
