// The clock of all waits and times: monotonic, unaffected by changes of the time of day.
#ifndef SLUICE_SRC_BASE_CLOCK_H_
#define SLUICE_SRC_BASE_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace sluice {

inline int64_t MonotonicNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace sluice

#endif  // SLUICE_SRC_BASE_CLOCK_H_
