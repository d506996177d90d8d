// Pauses double, but for those that servers ask for.
#include "session/shard/next_attempt.h"

#include <algorithm>
#include <cstdint>

#include "storage/asked_pause.h"

namespace sluice {

absl::optional<absl::Duration> NextAttempt(const RetryOptions& retry, const absl::Status& failure,
                                           int attempts, AskedPauses* asked) {
  const absl::Duration pause = AskedPauseOf(failure);
  if (pause > absl::ZeroDuration()) {
    asked->time += pause;
    ++asked->count;
    // A client that asks sooner than a server wishes is asked to wait for longer.
    if (asked->time > retry.request_timeout) return absl::nullopt;
    return std::max(pause, retry.backoff);
  }
  const int failed = attempts - asked->count;
  if (failed >= retry.attempts_max) return absl::nullopt;
  return retry.backoff * (int64_t{1} << std::clamp(failed - 1, 0, 10));
}

}  // namespace sluice
