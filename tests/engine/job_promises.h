// What a gate promises, looked at from outside: limits at all times, and the rule of admission
// after each round of commands. Each function returns the broken promise in words, or nothing.
#ifndef SLUICE_TESTS_ENGINE_JOB_PROMISES_H_
#define SLUICE_TESTS_ENGINE_JOB_PROMISES_H_

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "deadlock/job.h"
#include "engine/engine.h"
#include "job_rank.h"

namespace sluice::deadlock {

// Slots are distinct, one for each bucket, and never more than the budget; caps are kept.
template <class Gate>
std::string BrokenLimit(const Job& job, const JobRank<Gate>& rank) {
  std::set<int> taken;
  size_t buckets = 0;
  bool any_live = false;
  for (const JobPart& part : rank.parts) {
    any_live |= part.live();
    if (!part.live() || part.stage == Stage::kWaiting) continue;
    ++buckets;
    taken.insert(part.slot);
  }
  if (taken.size() != buckets) return "two buckets in one slot";
  if (!taken.empty() && (*taken.begin() < 0 || *taken.rbegin() >= job.options.slots)) {
    return "a slot number that does not exist";
  }
  const int held = rank.gate.counters().held_buckets;
  if (held > job.options.slots || held < static_cast<int>(buckets)) return "the budget";
  for (int channel = 0; channel < job.options.channels; ++channel) {
    if (rank.gate.channel_counters(channel).in_flight > job.options.max_in_flight) {
      return "max_in_flight";
    }
  }
  return rank.gate.idle() == any_live ? "idle()" : "";
}

// The smallest unfinished bucket is admitted, and nothing waits that the rule would let in.
inline std::string BrokenAdmission(const Job& job, const JobRank<Engine>& rank) {
  const EngineOptions& options = job.options;
  const int free = options.slots - rank.gate.counters().held_buckets;
  const JobPart* smallest = nullptr;
  std::set<int> passed_over;  // channels whose first waiting bucket was looked at
  for (const JobPart& part : rank.parts) {
    if (!part.live() && !rank.Expects(part)) continue;
    const bool frozen = rank.IsFrozen(job, part);
    if (smallest == nullptr) {
      smallest = &part;
      if (part.live() && !frozen && !part.admitted) {
        return "the smallest unfinished bucket has no slot";
      }
    }
    if (!part.live() || part.admitted || !passed_over.insert(part.channel).second) continue;
    const int held_by_smallest = smallest->admitted ? 1 : 0;
    if (!frozen && rank.gate.channel_counters(part.channel).in_flight < options.max_in_flight &&
        free - 1 + held_by_smallest >= 1) {
      return "a bucket waits that the rule would let in";
    }
  }
  if (smallest != nullptr && smallest->admitted && free > 0 &&
      rank.gate.blocked() == Blocked::kBudget) {
    return "a slot is free and a bucket waits for it";
  }
  return "";
}

// Standings agree with what the rank has seen of its buckets.
inline std::string BrokenStanding(const JobRank<Engine>& rank) {
  for (const JobPart& part : rank.parts) {
    const std::optional<BucketStanding> standing = rank.gate.StandingOf(part.lane, part.id());
    if (!part.fed) {
      if (standing.has_value()) return "a standing for a bucket that was not fed";
      continue;
    }
    if (!standing.has_value()) {
      // A bucket that was given up before it was fed is unknown.
      if (part.stage != Stage::kCancelled) return "no standing for a bucket that was fed";
      continue;
    }
    if (HasEnded(standing->stage) != HasEnded(part.stage)) return "StandingOf: the end";
    if (part.live() && (standing->stage != part.stage || standing->admitted != part.admitted ||
                        standing->under_way != part.under_way)) {
      return "StandingOf";
    }
  }
  return "";
}

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_ENGINE_JOB_PROMISES_H_
