// Computes the limits of a session from its options, or says why they cannot work.
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

// How many buckets of a channel may be in flight in a session of `ranks` ranks; 0: automatic. The
// result is what the options ask for. With a budget it is at most max(8, 512 / (ranks - 1)). Then
// at most 2048 buckets of all priority classes are on their way to a rank, where the 8 do not count
// more. A message that its receiver has not asked for takes about 0.9 KB of the receiver's memory
// (Open MPI 4.1.4), which no budget counts. Equal on all ranks.
int MaxInFlightOf(const SessionOptions& options, int ranks);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_LIMITS_H_
