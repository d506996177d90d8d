// Small jobs for the searches: which ranks take part in which buckets, and with what.
// A description only; job_world.h runs it.
#ifndef SLUICE_TESTS_ENGINE_JOB_H_
#define SLUICE_TESTS_ENGINE_JOB_H_

#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "engine/engine.h"

namespace sluice {

struct JobMember {
  int rank = 0;
  StageSet stages = kStageMove;
  int slots = 1;

  friend bool operator<(const JobMember& a, const JobMember& b) {
    return std::tie(a.rank, a.stages, a.slots) < std::tie(b.rank, b.stages, b.slots);
  }
};

// The source comes first.
using JobBucket = std::vector<JobMember>;

struct Job {
  int ranks = 1;
  EngineOptions options;           // of every rank; channels is set by WithChannels
  std::vector<JobBucket> buckets;  // in id order
  std::vector<int> channel;        // of every bucket
  std::vector<int> run;            // of every bucket, not descending
  std::vector<int> lane = {0};     // of every run
  unsigned late_ranks = 0;         // a bit per rank that starts a run only when it has ended its
                                   // part of those before; the others start as soon as they like
  int cancelled_run = -1;          // cancelled by all ranks, each at a time of its own; -1 for none

  int runs() const { return static_cast<int>(lane.size()); }
  int LaneOf(int of_run) const { return lane[static_cast<size_t>(of_run)]; }
  std::string ToString() const;
};

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

// Puts buckets with equal members into one channel.
Job WithChannels(int ranks, const EngineOptions& options, std::vector<JobBucket> buckets);

// The same buckets in several runs: `run` of each bucket, `lane` of each run. Channels are split by
// lanes.
Job WithRuns(Job job, std::vector<int> run, std::vector<int> lane);

// The numbers from 0 that are written as `digits` digits in base `base`, one after the other.
std::vector<std::vector<int>> AllSequences(int base, int digits);

// Every job of `count` buckets drawn from `kinds` between ranks 0 .. ranks-1, one for each class of
// jobs that differ only in the names of the ranks.
std::vector<std::vector<JobBucket>> AllJobs(int ranks, const std::vector<JobBucket>& kinds,
                                            int count);

// Up to ranks_max ranks, a few dozen buckets, of two to four members, of one or two slots.
Job RandomJob(std::mt19937& random, int ranks_max);

}  // namespace sluice

#endif  // SLUICE_TESTS_ENGINE_JOB_H_
