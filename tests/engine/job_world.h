// A job under way: one gate per rank, and the world around the gates, which carries out commands in
// an order that somebody else chooses (job_search.h: every order; random_jobs_test: a random one).
//
// Fills and drains end in any order. A move ends at a member only when all members have begun it: a
// rendezvous, as with large messages. Ranks feed their gates, and start, at their own pace. After
// every event the world checks what the gate promises and keeps the first broken promise.
#ifndef SLUICE_TESTS_ENGINE_JOB_WORLD_H_
#define SLUICE_TESTS_ENGINE_JOB_WORLD_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/engine.h"
#include "job.h"

namespace sluice {

// When a rank asks its gate for commands: after each event, or at any time (an event of its own).
enum class Asking : uint8_t { kAtOnce, kAnyTime };

// In which order a rank feeds its buckets. Only a PlainGate takes another one than by id.
enum class Feeding : uint8_t { kById, kSendsFirst };

struct JobEvent {
  enum class Kind : uint8_t { kFeed, kAsk, kFinish, kCancel, kFail };
  Kind kind = Kind::kFeed;
  int rank = 0;
  size_t index = 0;  // which of the rank's buckets
};

template <class Gate>
class JobWorld {
 public:
  // What a member knows of a bucket.
  struct Part {
    size_t bucket = 0;
    JobMember member;
    bool fed = false;
    Stage stage = Stage::kWaiting;
    bool admitted = false;
    bool under_way = false;
    bool cancelled = false;
    Ticket ticket = 0;
    std::array<int, kMaxSlotsPerBucket> slots = {-1, -1};

    bool live() const { return fed && !HasEnded(stage); }
  };
  // All that an event at one rank can change.
  struct Rank {
    Gate gate;
    std::vector<Part> parts;  // in feeding order
    bool failed = false;
    bool has_commands = false;  // Next would give one
  };
  // Two equal keys, of one job: the same future.
  using Key = std::array<uint64_t, 2>;
  static constexpr size_t kPartsMax = 30;

  JobWorld(const Job& job, Asking asking, Feeding feeding = Feeding::kById)
      : job_(&job), asking_(asking) {
    for (int rank = 0; rank < job.ranks; ++rank) {
      Rank state{.gate = Gate(job.options), .parts = {}};
      for (size_t i = 0; i < job.buckets.size(); ++i) {
        for (const JobMember& member : job.buckets[i]) {
          if (member.rank == rank) state.parts.push_back({.bucket = i, .member = member});
        }
      }
      if (feeding == Feeding::kSendsFirst) {
        std::stable_partition(state.parts.begin(), state.parts.end(), [&](const Part& part) {
          return job.buckets[part.bucket].front().rank == rank;
        });
      }
      ranks_.push_back(std::move(state));
    }
  }

  // Lets buckets be cancelled and stages fail, at any time. For jobs of one rank, which has no peer
  // that would have to be told.
  void AllowFailures() { failures_ = true; }

  Rank& rank(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  const std::string& broken() const { return broken_; }
  int peak_slots() const { return peak_slots_; }

  bool Complete() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
      return std::all_of(rank.parts.begin(), rank.parts.end(), [&rank](const Part& part) {
        return HasEnded(part.stage) || (rank.failed && !part.fed);
      });
    });
  }

  std::vector<JobEvent> Events() const {
    using Kind = JobEvent::Kind;
    std::vector<JobEvent> events;
    for (int r = 0; r < job_->ranks; ++r) {
      const Rank& rank = ranks_[static_cast<size_t>(r)];
      if (rank.has_commands) events.push_back({Kind::kAsk, r, 0});
      const size_t next = NextToFeed(rank);
      if (next < rank.parts.size() && rank.gate.CanSubmit()) {
        events.push_back({Kind::kFeed, r, next});
      }
      for (size_t i = 0; i < rank.parts.size(); ++i) {
        const Part& part = rank.parts[i];
        const bool may_end =
            part.under_way && (part.stage != Stage::kMoving || AllHaveBegunToMove(part.bucket));
        if (may_end) events.push_back({Kind::kFinish, r, i});
        if (failures_ && may_end) events.push_back({Kind::kFail, r, i});
        if (failures_ && part.live() && !part.cancelled) events.push_back({Kind::kCancel, r, i});
      }
    }
    return events;
  }

  void Apply(const JobEvent& event) {
    Rank& state = rank(event.rank);
    if (event.kind == JobEvent::Kind::kAsk) {
      Ask(state);
      return;
    }
    Part& part = state.parts[event.index];
    switch (event.kind) {
      case JobEvent::Kind::kFeed:
        Feed(state, part);
        break;
      case JobEvent::Kind::kFinish:
        state.gate.Finish(part.ticket);
        StageEnded(state, part);
        break;
      default:
        Disturb(state, part, event.kind);
    }
    CheckLimits(state);
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
      if (rank.failed) key[1] |= uint64_t{1} << 63;
      for (const Part& part : rank.parts) {
        key[part_number / 15] |= Code(part) << (4 * (part_number % 15));
        ++part_number;
      }
    }
    return key;
  }

 private:
  static uint64_t Code(const Part& part) {
    if (!part.fed) return 0;
    if (HasEnded(part.stage)) return 7;
    if (part.stage == Stage::kWaiting) return part.admitted ? 9 : 1;
    // 9 is an admitted bucket that awaits its turn to move. kFilling 2 or 3, kMoving 4 or 5,
    // kDraining 6 (it is under way or the bucket has ended).
    const uint64_t code = 2 * static_cast<uint64_t>(part.stage) +
                          (part.stage != Stage::kDraining && !part.under_way ? 1 : 0);
    return code + (part.cancelled ? 8 : 0);
  }

  static size_t NextToFeed(const Rank& rank) {
    size_t next = 0;
    while (next < rank.parts.size() && rank.parts[next].fed) ++next;
    return next;
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

  void Break(const std::string& promise) {
    if (broken_.empty()) broken_ = promise;
  }

  void Feed(Rank& state, Part& part) {
    part.fed = true;
    part.ticket = state.gate.Submit({.id = BucketId({.n = part.bucket}),
                                     .channel = job_->channel[part.bucket],
                                     .stages = part.member.stages,
                                     .slots = part.member.slots,
                                     .staging_bytes = 10 * part.member.slots,
                                     .operations = 1,
                                     .cookie = part.bucket});
  }

  void StageEnded(const Rank& state, Part& part) {
    part.under_way = false;
    if (part.cancelled) {
      part.stage = Stage::kCancelled;
    } else if (state.failed) {
      part.stage = Stage::kFailed;
    } else if (NextStage(part.stage, part.member.stages) == Stage::kDone) {
      part.stage = Stage::kDone;
    }
  }

  void Disturb(Rank& state, Part& part, JobEvent::Kind kind) {
    if constexpr (std::is_same_v<Gate, Engine>) {
      if (kind == JobEvent::Kind::kCancel) {
        state.gate.Cancel(part.ticket);
        part.cancelled = true;
        if (!part.under_way) part.stage = Stage::kCancelled;
        return;
      }
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
    CheckLimits(state);
    if (std::is_same_v<Gate, Engine> && !state.failed) CheckAdmission(state);
  }

  void Obey(Rank& state, const Command& command) {
    const auto part = std::find_if(state.parts.begin(), state.parts.end(),
                                   [&](const Part& p) { return p.bucket == command.cookie; });
    if (part == state.parts.end() || !part->live() || part->under_way ||
        part->ticket != command.ticket || part->cancelled) {
      return Break("a command for a bucket that can have none");
    }
    if (NextStage(part->stage, part->member.stages) != command.stage) Break("a stage out of order");
    if (part->stage != Stage::kWaiting && part->slots != command.slots) Break("the slots changed");
    for (const Part& other : state.parts) {
      const bool before = other.bucket < part->bucket && other.live() &&
                          job_->channel[other.bucket] == job_->channel[part->bucket];
      if (command.stage == Stage::kMoving && before && other.stage < Stage::kMoving &&
          (other.member.stages & kStageMove) != 0) {
        Break("moves of a channel out of order");
      }
    }
    part->stage = command.stage;
    part->under_way = true;
    part->slots = command.slots;
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
      int& left = unseen[static_cast<size_t>(job_->channel[part.bucket])];
      part.admitted = left-- > 0;
    }
  }

  // Slots are distinct, as many as asked for, and never more than the budget; caps are kept.
  void CheckLimits(const Rank& state) {
    std::set<int> taken;
    size_t slots = 0;
    bool any_live = false;
    for (const Part& part : state.parts) {
      any_live |= part.live();
      if (!part.live() || part.stage == Stage::kWaiting) continue;
      slots += static_cast<size_t>(part.member.slots);
      for (int i = 0; i < part.member.slots; ++i) taken.insert(part.slots[static_cast<size_t>(i)]);
    }
    if (taken.size() != slots) Break("two buckets in one slot");
    if (!taken.empty() && (*taken.begin() < 0 || *taken.rbegin() >= job_->options.slots)) {
      Break("a slot number that does not exist");
    }
    const int held = state.gate.counters().held_slots;
    peak_slots_ = std::max(peak_slots_, held);
    if (held > job_->options.slots || held < static_cast<int>(slots)) Break("the budget");
    for (int channel = 0; channel < job_->options.channels; ++channel) {
      if (state.gate.channel_counters(channel).in_flight > job_->options.max_in_flight) {
        Break("max_in_flight");
      }
    }
    if (state.gate.idle() == any_live) Break("idle()");
  }

  // The smallest unfinished bucket is admitted, and nothing waits that the rule would let in.
  void CheckAdmission(const Rank& state) {
    const EngineOptions& options = job_->options;
    const int free = options.slots - state.gate.counters().held_slots;
    int held_by_smallest = -1;
    std::set<int> passed_over;  // channels whose first waiting bucket was looked at
    for (const Part& part : state.parts) {
      if (!part.live()) continue;
      if (held_by_smallest < 0) {
        if (!part.admitted) Break("the smallest unfinished bucket has no slot");
        held_by_smallest = part.member.slots;
      }
      const int channel = job_->channel[part.bucket];
      if (part.admitted || !passed_over.insert(channel).second) continue;
      if (state.gate.channel_counters(channel).in_flight < options.max_in_flight &&
          free - part.member.slots + held_by_smallest >= options.slots_per_bucket_max) {
        Break("a bucket waits that the rule would let in");
      }
    }
    const bool uniform = options.slots_per_bucket_max == 1;
    if constexpr (std::is_same_v<Gate, Engine>) {
      if (uniform && state.gate.blocked() == Blocked::kBudget && free > 0) {
        Break("a slot is free and a bucket waits for it");
      }
    }
  }

  const Job* job_;
  Asking asking_;
  bool failures_ = false;
  std::vector<Rank> ranks_;
  std::string broken_;
  int peak_slots_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_ENGINE_JOB_WORLD_H_
