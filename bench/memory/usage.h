// What the kernel says that this process and the calling thread have used.
#ifndef SLUICE_BENCH_MEMORY_USAGE_H_
#define SLUICE_BENCH_MEMORY_USAGE_H_

#include <cstdint>

namespace sluice::bench {

struct Usage {
  double cpu_s = 0;          // of all threads of the process, in the kernel too
  int64_t major_faults = 0;  // of the calling thread: pages that it waited for storage for
};

Usage UsageNow();

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_MEMORY_USAGE_H_
