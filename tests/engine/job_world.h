// A job under way: one gate per rank, and the world around the gates. The world carries out
// commands in an order that somebody else chooses (job_search.h: every order; random_jobs_test: a
// random one).
//
// Fills and drains end in any order. A move ends at a member only when all members have begun it: a
// rendezvous, as with large messages. Ranks start their runs, and feed their gates, at their own
// pace. After every event the world checks what the gate promises and keeps the first broken
// promise.
#ifndef SLUICE_TESTS_ENGINE_JOB_WORLD_H_
#define SLUICE_TESTS_ENGINE_JOB_WORLD_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "deadlock/job.h"
#include "engine/engine.h"
#include "job_promises.h"
#include "job_rank.h"

namespace sluice::deadlock {

// When a rank asks its gate for commands: after each event, or at any time (an event of its own).
enum class Asking : uint8_t { kAtOnce, kAnyTime };

// In which order a rank feeds its buckets. Only a PlainGate takes another one than by id.
enum class Feeding : uint8_t { kById, kSendsFirst };

struct JobEvent {
  enum class Kind : uint8_t { kStart, kFeed, kAsk, kFinish, kFail, kFreeze, kThaw };
  Kind kind = Kind::kFeed;
  int rank = 0;
  size_t index = 0;  // which of the rank's buckets, or which run
};

template <class Gate>
class JobWorld {
 public:
  using Kind = JobEvent::Kind;
  using Part = JobPart;
  using Rank = JobRank<Gate>;
  // Two equal keys, of one job: the same future.
  using Key = std::array<uint64_t, 3>;
  static constexpr size_t kPartsMax = 30;

  JobWorld(const Job& job, Asking asking, Feeding feeding = Feeding::kById)
      : job_(&job), asking_(asking) {
    for (int rank = 0; rank < job.ranks; ++rank) {
      Rank state{{.gate = Gate(job.options), .parts = PartsOf(job, rank), .lane = job.lane}};
      if (feeding == Feeding::kSendsFirst) {
        std::stable_partition(state.parts.begin(), state.parts.end(), [&](const Part& part) {
          return job.buckets[part.bucket].front().rank == rank;
        });
      }
      // With a single run there is nothing to start early or late.
      if (job.runs() == 1) state.runs_started = 1;
      ranks_.push_back(std::move(state));
    }
  }

  // Lets stages fail, at any time. For jobs of one rank, which has no peer that would have to be
  // told.
  void AllowFailures() { failures_ = true; }

  Rank& rank(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  const std::string& broken() const { return broken_; }
  int peak_slots() const { return peak_slots_; }

  bool Complete() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [this](const Rank& rank) {
      if (job_->cancelled_run >= 0 && rank.cancelling != Cancelling::kThawed) return false;
      return std::all_of(rank.parts.begin(), rank.parts.end(), [&rank](const Part& part) {
        return HasEnded(part.stage) || (rank.failed && !part.fed);
      });
    });
  }

  // How a complete job ended: each bucket by all its members or by none.
  bool IsConsistent() const {
    if (failures_) return true;  // one rank, on which anything may end early
    std::vector<int> done(job_->buckets.size());
    for (const Rank& rank : ranks_) {
      for (const Part& part : rank.parts) done[part.bucket] += part.stage == Stage::kDone ? 1 : 0;
    }
    for (size_t i = 0; i < done.size(); ++i) {
      const bool all = done[i] == static_cast<int>(job_->buckets[i].size());
      if (!all && (done[i] > 0 || job_->run[i] != job_->cancelled_run)) return false;
    }
    return true;
  }

  std::vector<JobEvent> Events() const {
    std::vector<JobEvent> events;
    for (int r = 0; r < job_->ranks; ++r) {
      const Rank& rank = ranks_[static_cast<size_t>(r)];
      if (rank.has_commands) events.push_back({Kind::kAsk, r, 0});
      AddRunEvents(r, rank, &events);
      for (int lane = 0; lane < job_->options.lanes; ++lane) {
        const size_t next = rank.NextToFeed(lane);
        if (next < rank.parts.size() && rank.gate.CanSubmit(lane)) {
          events.push_back({Kind::kFeed, r, next});
        }
      }
      for (size_t i = 0; i < rank.parts.size(); ++i) {
        const Part& part = rank.parts[i];
        const bool may_end =
            part.under_way && (part.stage != Stage::kMoving || AllHaveBegunToMove(part.bucket));
        if (may_end) events.push_back({Kind::kFinish, r, i});
        if (failures_ && may_end) events.push_back({Kind::kFail, r, i});
      }
    }
    return events;
  }

  void Apply(const JobEvent& event) {
    Rank& state = rank(event.rank);
    switch (event.kind) {
      case Kind::kAsk:
        return Ask(state);
      case Kind::kStart:
        state.StartNextRun();
        break;
      case Kind::kFreeze:
        Freeze(state);
        break;
      case Kind::kThaw:
        Thaw(state);
        break;
      case Kind::kFeed:
        state.Feed(event.index);
        break;
      case Kind::kFinish:
        state.gate.Finish(state.parts[event.index].ticket);
        StageEnded(state, state.parts[event.index]);
        break;
      case Kind::kFail:
        Fail(state, state.parts[event.index]);
        break;
    }
    Check(BrokenLimit(*job_, state));
    if (asking_ == Asking::kAtOnce) {
      Ask(state);
    } else {
      Gate probe = state.gate;
      Command command;
      state.has_commands = probe.Next(&command);
    }
  }

  Key StateKey() const {
    Key key = {};
    size_t part_number = 0;
    for (const Rank& rank : ranks_) {
      key[2] = key[2] << 8 | static_cast<uint64_t>(rank.runs_started) << 4 |
               static_cast<uint64_t>(rank.gate_is_frozen) << 3 |
               static_cast<uint64_t>(rank.cancelling) << 1 | static_cast<uint64_t>(rank.failed);
      for (const Part& part : rank.parts) {
        key[part_number / 15] |= Code(part) << (4 * (part_number % 15));
        ++part_number;
      }
    }
    return key;
  }

 private:
  static constexpr bool kIsEngine = std::is_same_v<Gate, Engine>;

  static uint64_t Code(const Part& part) {
    if (!part.fed) return 0;
    if (part.stage == Stage::kCancelled) return 8;
    if (HasEnded(part.stage)) return 7;
    if (part.stage == Stage::kWaiting) return part.admitted ? 9 : 1;
    // 9 is an admitted bucket that awaits its turn to move. kFilling 2 or 3, kMoving 4 or 5,
    // kDraining 6 (it is under way or the bucket has ended).
    return 2 * static_cast<uint64_t>(part.stage) +
           (part.stage != Stage::kDraining && !part.under_way ? 1 : 0);
  }

  void Check(const std::string& promise) {
    if (broken_.empty()) broken_ = promise;
  }

  void AddRunEvents(int r, const Rank& rank, std::vector<JobEvent>* events) const {
    const int run = rank.runs_started;
    const bool late = (job_->late_ranks >> r & 1U) != 0;
    if (run < job_->runs() && (!late || rank.HasEndedRunsBelow(run))) {
      events->push_back({Kind::kStart, r, static_cast<size_t>(run)});
    }
    const int cancelled = job_->cancelled_run;
    if (cancelled < 0 || rank.runs_started <= cancelled) return;
    const auto index = static_cast<size_t>(cancelled);
    if (rank.cancelling == Cancelling::kNo) events->push_back({Kind::kFreeze, r, index});
    const bool all_frozen = std::none_of(ranks_.begin(), ranks_.end(), [](const Rank& other) {
      return other.cancelling == Cancelling::kNo;
    });
    if (rank.cancelling == Cancelling::kFrozen && all_frozen) {
      events->push_back({Kind::kThaw, r, index});
    }
  }

  bool AllHaveBegunToMove(size_t bucket) const {
    const JobBucket& members = job_->buckets[bucket];
    return std::all_of(members.begin(), members.end(), [this, bucket](const JobMember& member) {
      const std::vector<Part>& parts = ranks_[static_cast<size_t>(member.rank)].parts;
      const auto part = std::find_if(parts.begin(), parts.end(),
                                     [bucket](const Part& p) { return p.bucket == bucket; });
      return part->stage >= Stage::kMoving;
    });
  }

  // A rank that has nothing left of the run answers by its last bucket.
  void Freeze(Rank& state) {
    const int run = job_->cancelled_run;
    state.cancelling = Cancelling::kFrozen;
    state.frozen_at = BucketId();
    bool left = false;
    for (const Part& part : state.parts) {
      if (part.run != run) continue;
      state.frozen_at = part.id();
      left |= !HasEnded(part.stage);
    }
    if constexpr (kIsEngine) {
      if (left) state.frozen_at = state.gate.Freeze(LaneOfCancelled(), static_cast<uint64_t>(run));
      state.gate_is_frozen = left;
    }
  }

  void Thaw(Rank& state) {
    BucketId last;
    for (const Rank& rank : ranks_) last = std::max(last, rank.frozen_at);
    state.cancelling = Cancelling::kThawed;
    if constexpr (kIsEngine) {
      if (!state.gate_is_frozen) return;
      state.gate.Thaw(LaneOfCancelled(), static_cast<uint64_t>(job_->cancelled_run), last);
    }
    const bool pending = state.NextToFeed(LaneOfCancelled()) < state.parts.size();
    for (Part& part : state.parts) {
      if (part.run != job_->cancelled_run || HasEnded(part.stage) || part.id() <= last) continue;
      if (part.admitted) Check("a bucket above the last one was admitted");
      part.fed = true;
      part.stage = Stage::kCancelled;
    }
    if (pending) state.SayWhatComes(LaneOfCancelled());
  }

  int LaneOfCancelled() const { return job_->LaneOf(job_->cancelled_run); }

  void StageEnded(const Rank& state, Part& part) {
    part.under_way = false;
    if (state.failed) {
      part.stage = Stage::kFailed;
    } else if (NextStage(part.stage, part.member.stages) == Stage::kDone) {
      part.stage = Stage::kDone;
    }
  }

  void Fail(Rank& state, Part& part) {
    if constexpr (kIsEngine) {
      state.gate.Fail(part.ticket, absl::InternalError("a stage failed"));
      part.under_way = false;
      part.stage = Stage::kFailed;
      state.failed = true;
      for (Part& other : state.parts) {
        if (other.live() && !other.under_way) other.stage = Stage::kFailed;
      }
    }
  }

  void Ask(Rank& state) {
    Command command;
    while (state.gate.Next(&command)) Obey(state, command);
    state.has_commands = false;
    SeeAdmissions(state);
    peak_slots_ = std::max(peak_slots_, state.gate.counters().held_buckets);
    Check(BrokenLimit(*job_, state));
    if constexpr (kIsEngine) {
      Check(BrokenStanding(state));
      if (!state.failed) Check(BrokenAdmission(*job_, state));
    }
  }

  void Obey(Rank& state, const Command& command) {
    Part* const part = command.cookie < state.parts.size() ? &state.parts[command.cookie] : nullptr;
    if (part == nullptr || !part->live() || part->under_way || part->ticket != command.ticket) {
      return Check("a command for a bucket that can have none");
    }
    if (NextStage(part->stage, part->member.stages) != command.stage) Check("a stage out of order");
    if (part->stage != Stage::kWaiting && part->slot != command.slot) Check("the slot changed");
    for (const Part& other : state.parts) {
      const bool before =
          other.bucket < part->bucket && other.live() && other.channel == part->channel;
      if (command.stage == Stage::kMoving && before && other.stage < Stage::kMoving &&
          (other.member.stages & kStageMove) != 0) {
        Check("moves of a channel out of order");
      }
    }
    part->stage = command.stage;
    part->under_way = true;
    part->slot = command.slot;
  }

  // A bucket that moves first and awaits its turn is admitted without a command. A channel admits
  // in order, so its number in flight tells which of its buckets these are.
  void SeeAdmissions(Rank& state) {
    std::vector<int> unseen(static_cast<size_t>(job_->options.channels));
    for (size_t i = 0; i < unseen.size(); ++i) {
      unseen[i] = state.gate.channel_counters(static_cast<int>(i)).in_flight;
    }
    for (Part& part : state.parts) {
      if (!part.live()) continue;
      int& left = unseen[static_cast<size_t>(part.channel)];
      part.admitted = left-- > 0;
    }
  }

  const Job* job_;
  Asking asking_;
  bool failures_ = false;
  std::vector<Rank> ranks_;
  std::string broken_;
  int peak_slots_ = 0;
};

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_ENGINE_JOB_WORLD_H_
