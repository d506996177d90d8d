// What the kernel says that this process and the calling thread have used.
#ifndef SLUICE_BENCH_MEMORY_USAGE_H_
#define SLUICE_BENCH_MEMORY_USAGE_H_

#include <sys/resource.h>

#include <cstdint>

#include "absl/time/time.h"

namespace sluice::bench {

struct Usage {
  double cpu_s = 0;          // of all threads of the process, in the kernel too
  int64_t major_faults = 0;  // of the calling thread: pages that it waited for storage for
};

inline Usage UsageNow() {
  const auto seconds = [](const timeval& time) {
    return absl::ToDoubleSeconds(absl::DurationFromTimeval(time));
  };
  Usage usage;
  rusage of;
  if (getrusage(RUSAGE_SELF, &of) == 0) usage.cpu_s = seconds(of.ru_utime) + seconds(of.ru_stime);
  if (getrusage(RUSAGE_THREAD, &of) == 0) usage.major_faults = of.ru_majflt;
  return usage;
}

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_MEMORY_USAGE_H_
