// Times of the store: nanoseconds of the clock that only runs forward.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_CLOCK_H_
#define SLUICE_SRC_WORLD_STORE_STORE_CLOCK_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace sluice {

inline constexpr int64_t kStoreNsPerMs = 1'000'000;
inline constexpr int64_t kStoreNever = std::numeric_limits<int64_t>::max();
// Longer waits count as this one, so that sums of times fit.
inline constexpr absl::Duration kLongestStoreWait = absl::Hours(24 * 365);

// Never below 0.
inline int64_t StoreWaitNs(absl::Duration wait) {
  return absl::ToInt64Nanoseconds(std::clamp(wait, absl::ZeroDuration(), kLongestStoreWait));
}

inline std::chrono::steady_clock::time_point StoreTimePoint(int64_t time_ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time_ns));
}

// For poll() and epoll_wait(): rounded up, so that nobody wakes before the time.
inline int StoreWaitMs(int64_t from_ns, int64_t to_ns) {
  if (to_ns == kStoreNever) return -1;
  constexpr int64_t kMostMs = 60'000;
  const int64_t wait_ns = std::clamp(to_ns - from_ns, int64_t{0}, kMostMs * kStoreNsPerMs);
  return static_cast<int>((wait_ns + kStoreNsPerMs - 1) / kStoreNsPerMs);
}

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_CLOCK_H_
