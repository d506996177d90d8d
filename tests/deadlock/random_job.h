// Random jobs: overlapping meshes, buckets of two to five members between them, random budgets.
#ifndef SLUICE_TESTS_DEADLOCK_RANDOM_JOB_H_
#define SLUICE_TESTS_DEADLOCK_RANDOM_JOB_H_

#include "deadlock/job.h"
#include "deadlock/random.h"

namespace sluice::deadlock {

// Two to ranks_max ranks. One to four meshes, each a random list of ranks in random order. A few
// dozen buckets of a few kinds, so that channels have several buckets. One to three runs, and one
// or two lanes. A bucket goes from a mesh to a mesh, maybe the same. It is a pair, a broadcast, a
// broadcast over a relay, a reduction with one owner or several, or a copy on one rank. The
// budget is drawn as buckets and as bytes, and the smaller one makes the slots. Some jobs have an
// ordered transport, and some ranks a consumer.
Job RandomJob(Random& random, int ranks_max);

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_RANDOM_JOB_H_
