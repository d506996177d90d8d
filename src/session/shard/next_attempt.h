// Decides when a read that has failed in passing is tried again.
#ifndef SLUICE_SRC_SESSION_SHARD_NEXT_ATTEMPT_H_
#define SLUICE_SRC_SESSION_SHARD_NEXT_ATTEMPT_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "sluice/stream.h"

namespace sluice {

// Pauses that a server has asked for, of one read.
struct AskedPauses {
  int count = 0;
  absl::Duration time = absl::ZeroDuration();
};

// The pause before the next attempt, where `attempts` were made and the last one ended as
// `failure`, which is transient. Nothing: no attempt is left. A pause that a server asks for is no
// failed attempt, as long as all of them take no longer than retry.request_timeout.
absl::optional<absl::Duration> NextAttempt(const RetryOptions& retry, const absl::Status& failure,
                                           int attempts, AskedPauses* asked);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_NEXT_ATTEMPT_H_
