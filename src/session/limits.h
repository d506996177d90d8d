// What a session's options come to, or why they cannot work.
#ifndef SLUICE_SRC_SESSION_LIMITS_H_
#define SLUICE_SRC_SESSION_LIMITS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "sluice/session.h"

namespace sluice {

struct Budget {
  int64_t slots = 0;       // equal slots, of each rank; 0: no limit
  int64_t slot_bytes = 0;  // the most bytes that a bucket may have
};

// InvalidArgument, with the breakdown, if an option is out of range or the limits leave no room for
// one bucket.
absl::StatusOr<Budget> ResolveBudget(const SessionOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_LIMITS_H_
