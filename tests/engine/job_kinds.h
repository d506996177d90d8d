// Buckets and jobs for the exhaustive searches: by hand, and all of a kind.
#ifndef SLUICE_TESTS_ENGINE_JOB_KINDS_H_
#define SLUICE_TESTS_ENGINE_JOB_KINDS_H_

#include <vector>

#include "engine/engine.h"
#include "sim/deadlock/job.h"

namespace sluice::deadlock {

// One bucket from rank src to rank dst, which holds dst_slots there.
JobBucket Pair(int src, int dst, int dst_slots = 1);
// From src over relay, which holds two slots, to dst.
JobBucket Relayed(int src, int relay, int dst);
// One bucket of one rank, which has no peer to wait for.
JobBucket Alone(StageSet stages, int slots = 1);

// All pairs of different ranks, dst_slots at the destination.
std::vector<JobBucket> PairsAmong(int ranks, int dst_slots);
// These for one and for two slots, and three relayed ones.
std::vector<JobBucket> AllKindsAmongThree();

// The numbers from 0 that are written as `digits` digits in base `base`, one after the other.
std::vector<std::vector<int>> AllSequences(int base, int digits);

// Every job of `count` buckets drawn from `kinds` between ranks 0 .. ranks-1, one for each class of
// jobs that differ only in the names of the ranks.
std::vector<std::vector<JobBucket>> AllJobs(int ranks, const std::vector<JobBucket>& kinds,
                                            int count);

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_ENGINE_JOB_KINDS_H_
