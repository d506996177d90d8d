// One rank of a job under way: its gate, and what it knows of its buckets and runs.
#ifndef SLUICE_TESTS_ENGINE_JOB_RANK_H_
#define SLUICE_TESTS_ENGINE_JOB_RANK_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/engine.h"
#include "job.h"

namespace sluice {

// What a member knows of a bucket.
struct JobPart {
  size_t bucket = 0;
  int run = 0;
  int lane = 0;
  int channel = 0;
  JobMember member;
  bool fed = false;
  Stage stage = Stage::kWaiting;
  bool admitted = false;
  bool under_way = false;
  bool cancelled = false;
  Ticket ticket = 0;
  std::array<int, kMaxSlotsPerBucket> slots = {-1, -1};

  bool live() const { return fed && !HasEnded(stage); }
  BucketId id() const { return IdOf(run, bucket); }
  static BucketId IdOf(int run, size_t bucket) {
    return BucketId({.run = static_cast<uint64_t>(run), .n = bucket});
  }
};

// A rank's buckets, in id order.
inline std::vector<JobPart> PartsOf(const Job& job, int rank) {
  std::vector<JobPart> parts;
  for (size_t i = 0; i < job.buckets.size(); ++i) {
    for (const JobMember& member : job.buckets[i]) {
      if (member.rank != rank) continue;
      parts.push_back({.bucket = i,
                       .run = job.run[i],
                       .lane = job.LaneOf(job.run[i]),
                       .channel = job.channel[i],
                       .member = member});
    }
  }
  return parts;
}

// Where a rank stands in cancelling the job's cancelled run.
enum class Cancelling : uint8_t { kNo, kFrozen, kThawed };

// All that an event at one rank can change.
template <class Gate>
struct JobRank {
  Gate gate;
  std::vector<JobPart> parts;  // in feeding order
  int runs_started = 0;
  Cancelling cancelling = Cancelling::kNo;
  BucketId frozen_at = {};      // meaningful from kFrozen on: what Freeze returned
  bool gate_is_frozen = false;  // meaningful in kFrozen: the rank had something left of the run
  bool failed = false;
  bool has_commands = false;  // Next would give one

  // True for a bucket that the rank knows to come.
  bool Expects(const JobPart& part) const { return !part.fed && part.run < runs_started; }

  // The index of the part to feed next to `lane`; parts.size() if there is none.
  size_t NextToFeed(int lane) const {
    size_t next = 0;
    while (next < parts.size() && !(parts[next].lane == lane && Expects(parts[next]))) ++next;
    return next;
  }

  bool HasEndedRunsBelow(int run) const {
    return std::all_of(parts.begin(), parts.end(), [run](const JobPart& part) {
      return part.run >= run || HasEnded(part.stage);
    });
  }

  // While the run is being cancelled here: its buckets from which on nothing may be admitted.
  bool IsFrozen(const Job& job, const JobPart& part) const {
    return cancelling == Cancelling::kFrozen && gate_is_frozen && part.run >= job.cancelled_run &&
           part.lane == job.LaneOf(job.cancelled_run) && part.id() > frozen_at;
  }
};

}  // namespace sluice

#endif  // SLUICE_TESTS_ENGINE_JOB_RANK_H_
