// One rank of a job under way: its gate, what it knows of its buckets, and how it feeds its runs.
#ifndef SLUICE_TESTS_DEADLOCK_RANK_FEED_H_
#define SLUICE_TESTS_DEADLOCK_RANK_FEED_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "deadlock/job.h"
#include "engine/engine.h"

namespace sluice::deadlock {

// What a member knows of a bucket.
struct JobPart {
  size_t bucket = 0;
  int run = 0;  // as this rank counts them
  int lane = 0;
  int channel = 0;
  JobMember member;
  bool fed = false;
  Stage stage = Stage::kWaiting;
  bool admitted = false;
  bool under_way = false;
  Ticket ticket = 0;
  int slot = -1;

  bool live() const { return fed && !HasEnded(stage); }
  BucketId id() const { return IdOf(run, bucket); }
  static BucketId IdOf(int run, size_t bucket) {
    return BucketId({.run = static_cast<uint64_t>(run), .n = bucket});
  }
};

// A rank's buckets, in id order.
std::vector<JobPart> PartsOf(const Job& job, int rank);

// What one rank knows of a job: its own channels and its runs. Channels are numbered in the order
// in which the rank goes round them. Runs come in the order in which the rank starts them.
struct RankView {
  EngineOptions options;
  std::vector<JobPart> parts;  // in the order of this rank's ids
  std::vector<int> lane;       // of every run
};
RankView ViewOf(const Job& job, int rank, bool in_own_start_order);

// Feeds a gate as callers have to (docs/gate.md). Each lane is fed in ascending order, and a run is
// announced before anything of a later one is fed. All of it is what an event at one rank can
// change, so that searches can copy it.
template <class Gate>
struct RankFeed {
  Gate gate;
  std::vector<JobPart> parts;  // in feeding order
  std::vector<int> lane;       // of every run
  int runs_started = 0;

  // True for a bucket that the rank knows to come.
  bool Expects(const JobPart& part) const { return !part.fed && part.run < runs_started; }

  // The index of the part to feed next to `to_lane`; parts.size() if there is none.
  size_t NextToFeed(int to_lane) const {
    size_t next = 0;
    while (next < parts.size() && !(parts[next].lane == to_lane && Expects(parts[next]))) ++next;
    return next;
  }

  bool HasEndedRunsBelow(int run) const {
    return std::all_of(parts.begin(), parts.end(), [run](const JobPart& part) {
      return part.run >= run || HasEnded(part.stage);
    });
  }

  void StartNextRun() {
    const int of_run = lane[static_cast<size_t>(runs_started)];
    const bool closed = NextToFeed(of_run) == parts.size();
    ++runs_started;
    if (closed) SayWhatComes(of_run);
  }

  // The bucket's cookie is its index among the parts.
  void Feed(size_t index) {
    JobPart& part = parts[index];
    part.fed = true;
    part.ticket = gate.Submit({.id = part.id(),
                               .lane = part.lane,
                               .channel = part.channel,
                               .stages = part.member.stages,
                               .staging_bytes = 10,
                               .operations = 1,
                               .cookie = index});
    SayWhatComes(part.lane);
  }

  // Announces the next run of a lane when all before it has been fed, and closes it behind the last
  // one. A single run needs neither.
  void SayWhatComes(int to_lane) {
    if (lane.size() == 1) return;
    const size_t next = NextToFeed(to_lane);
    if (next == parts.size()) {
      gate.Close(to_lane);
      return;
    }
    const bool begun = std::any_of(parts.begin(), parts.end(), [&](const JobPart& part) {
      return part.fed && part.run == parts[next].run;
    });
    if (!begun) gate.Announce(to_lane, JobPart::IdOf(parts[next].run, 0));
  }
};

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_RANK_FEED_H_
