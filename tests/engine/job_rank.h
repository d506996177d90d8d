// One rank of a job in a search: what feeds its gate, and where it stands with cancelling a run.
#ifndef SLUICE_TESTS_ENGINE_JOB_RANK_H_
#define SLUICE_TESTS_ENGINE_JOB_RANK_H_

#include <cstdint>

#include "deadlock/job.h"
#include "deadlock/rank_feed.h"
#include "engine/engine.h"

namespace sluice::deadlock {

// Where a rank stands in cancelling the job's cancelled run.
enum class Cancelling : uint8_t { kNo, kFrozen, kThawed };

// All that an event at one rank can change.
template <class Gate>
struct JobRank : RankFeed<Gate> {
  Cancelling cancelling = Cancelling::kNo;
  BucketId frozen_at = {};      // meaningful from kFrozen on: what Freeze returned
  bool gate_is_frozen = false;  // meaningful in kFrozen: the rank had something left of the run
  bool failed = false;
  bool has_commands = false;  // Next would give one

  // While the run is being cancelled here: its buckets from which on nothing may be admitted.
  bool IsFrozen(const Job& job, const JobPart& part) const {
    return cancelling == Cancelling::kFrozen && gate_is_frozen && part.run >= job.cancelled_run &&
           part.lane == job.LaneOf(job.cancelled_run) && part.id() > frozen_at;
  }
};

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_ENGINE_JOB_RANK_H_
