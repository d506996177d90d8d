// getrusage, twice.
#include "memory/usage.h"

#include <sys/resource.h>

namespace sluice::bench {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

Usage UsageNow() {
  Usage usage;
  rusage of;
  if (getrusage(RUSAGE_SELF, &of) == 0) usage.cpu_s = Seconds(of.ru_utime) + Seconds(of.ru_stime);
  if (getrusage(RUSAGE_THREAD, &of) == 0) usage.major_faults = of.ru_majflt;
  return usage;
}

}  // namespace sluice::bench
