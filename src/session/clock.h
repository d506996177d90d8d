// The clock that sessions read: monotonic, unaffected by changes of the time of day.
#ifndef SLUICE_SRC_SESSION_CLOCK_H_
#define SLUICE_SRC_SESSION_CLOCK_H_

#include <chrono>
#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace sluice {

inline int64_t MonotonicNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// When `timeout` from now has passed; a time that never comes if that is too far.
inline int64_t DeadlineNs(absl::Duration timeout) {
  int64_t deadline_ns = 0;
  if (__builtin_add_overflow(MonotonicNs(), absl::ToInt64Nanoseconds(timeout), &deadline_ns)) {
    return std::numeric_limits<int64_t>::max();
  }
  return deadline_ns;
}

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CLOCK_H_
