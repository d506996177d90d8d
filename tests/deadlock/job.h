// Small jobs for the searches for deadlocks: which ranks take part in which buckets, and with what.
// A description only; world.h plays it in one order of events, and tests/engine in every order.
#ifndef SLUICE_TESTS_DEADLOCK_JOB_H_
#define SLUICE_TESTS_DEADLOCK_JOB_H_

#include <string>
#include <tuple>
#include <vector>

#include "engine/engine.h"

namespace sluice::deadlock {

struct JobMember {
  int rank = 0;
  StageSet stages = kStageMove;
  bool owner = false;  // of a reduction: takes the others' contributions

  friend bool operator<(const JobMember& a, const JobMember& b) {
    return std::tie(a.rank, a.stages, a.owner) < std::tie(b.rank, b.stages, b.owner);
  }
};

// The source comes first.
using JobBucket = std::vector<JobMember>;

inline constexpr int kSlotBytes = 16;  // of random jobs: bytes are only for fragments, so few do

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

  // What only world.h plays. Empty: all the same, none.
  std::vector<int> bytes = {};                     // of every bucket
  std::vector<int> first_channel = {};             // of every rank: where it begins to go round
  std::vector<std::vector<int>> start_order = {};  // of every rank: the runs as it starts them
  std::vector<int> device_slots = {};  // of every rank: of what it delivers; 0: no consumer
  bool ordered_transport = false;      // moves go through a stream per rank

  int runs() const { return static_cast<int>(lane.size()); }
  int LaneOf(int of_run) const { return lane[static_cast<size_t>(of_run)]; }
  std::string ToString() const;
};

// Puts buckets with equal members into one channel.
Job WithChannels(int ranks, const EngineOptions& options, std::vector<JobBucket> buckets);

// The same buckets in several runs: `run` of each bucket, `lane` of each run. Channels are split by
// lanes.
Job WithRuns(Job job, std::vector<int> run, std::vector<int> lane);

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_JOB_H_
