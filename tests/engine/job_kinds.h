// Buckets and jobs for the exhaustive searches: by hand, and all of a kind.
#ifndef SLUICE_TESTS_ENGINE_JOB_KINDS_H_
#define SLUICE_TESTS_ENGINE_JOB_KINDS_H_

#include <vector>

#include "deadlock/job.h"
#include "engine/engine.h"

namespace sluice::deadlock {

// One bucket from rank src to rank dst.
JobBucket Pair(int src, int dst);
// From src over relay, which only moves it, to dst.
JobBucket Relayed(int src, int relay, int dst);
// One bucket of one rank, which has no peer to wait for.
JobBucket Alone(int rank, StageSet stages);

// All pairs of different ranks.
std::vector<JobBucket> PairsAmong(int ranks);
// Both pairs, and for each of two ranks a bucket of its own.
std::vector<JobBucket> AllKindsBetweenTwo();
// All pairs, and three relayed buckets.
std::vector<JobBucket> AllKindsAmongThree();

// The numbers from 0 that are written as `digits` digits in base `base`, one after the other.
std::vector<std::vector<int>> AllSequences(int base, int digits);

// Every job of `count` buckets drawn from `kinds` between ranks 0 .. ranks-1, one for each class of
// jobs that differ only in the names of the ranks.
std::vector<std::vector<JobBucket>> AllJobs(int ranks, const std::vector<JobBucket>& kinds,
                                            int count);

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_ENGINE_JOB_KINDS_H_
