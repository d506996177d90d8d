// Sleeps by the clock that ranks of one host have in common.
#ifndef SLUICE_BENCH_JOB_HOST_CLOCK_H_
#define SLUICE_BENCH_JOB_HOST_CLOCK_H_

#include <time.h>

#include <cerrno>
#include <cstdint>

namespace sluice::bench {

// Until then by MonotonicNs, as exactly as the kernel lets this thread: see PR_SET_TIMERSLACK.
inline void SleepUntilNs(int64_t ns) {
  const timespec until = {ns / 1000000000, ns % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_HOST_CLOCK_H_
