// Makes a job that stalls smaller for as long as it still does.
#ifndef SLUICE_TESTS_DEADLOCK_SHRINK_H_
#define SLUICE_TESTS_DEADLOCK_SHRINK_H_

#include "deadlock/job.h"
#include "deadlock/random.h"
#include "deadlock/rules.h"

namespace sluice::deadlock {

// A job and an order of events in which it stalls.
struct StalledJob {
  Job job;
  Random order;
};

// Drops buckets, members, ranks, runs, lanes, slots and whatever else is not needed, and tries a
// few dozen orders of events on each smaller job. Equal arguments give equal results.
StalledJob Shrink(const StalledJob& stalled, const Rules& rules);

// How much there is to read: what shrinking brings down.
int SizeOf(const Job& job);

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_SHRINK_H_
