// The event loop, and what members of buckets do in it.
#include "sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <random>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "sim/event_queue.h"
#include "sim/flow_network.h"
#include "sim/rank.h"

namespace sluice::sim {
namespace {

enum class EventKind : uint64_t { kRankStart, kCopyEnd, kFlowBegin, kFlowEnd };
constexpr int kKindShift = 60;
constexpr int kSlotBits = 28;

uint64_t NumberOf(EventKind kind, uint64_t of, uint64_t slot = 0) {
  return static_cast<uint64_t>(kind) << kKindShift | of << kSlotBits | slot;
}

// Instants between two calls of Progress.
constexpr int64_t kProgressStride = 4096;
// Stalled ranks that are described.
constexpr int kDescribedRanks = 4;

// A bucket at one of its members.
struct SlotRef {
  int32_t rank = 0;
  int32_t slot = 0;
};

// A message: from one member of a bucket to another.
struct MessageKey {
  BucketId id;
  int32_t src = 0;
  int32_t dst = 0;

  friend bool operator==(const MessageKey&, const MessageKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const MessageKey& key) {
    return H::combine(std::move(h), key.id.high(), key.id.low(), key.src, key.dst);
  }
};

struct Message {
  SlotRef src;
  SlotRef dst;
  TimePs since = 0;
  int32_t bytes = 0;
  int32_t before = -1;  // of a fold: the one that met its other side before it
};

class Simulation {
 public:
  Simulation(const JobPlans& plans, const SimulationOptions& options)
      : options_(options),
        network_(options.network, plans.ranks(), static_cast<uint64_t>(EventKind::kFlowEnd)),
        copy_latency_ps_(std::llround(options.network.copy_latency * 1e12)),
        copy_ps_per_byte_(1e12 / options.network.copy_rate) {
    const size_t ranks = static_cast<size_t>(plans.ranks());
    ranks_.reserve(ranks);
    for (int rank = 0; rank < plans.ranks(); ++rank) {
      ranks_.emplace_back(plans, rank, options.budget_buckets, options.max_in_flight,
                          options.look_ahead, options.network.folds);
      parts_ += static_cast<int64_t>(plans.plan(rank).buckets.size());
    }
    clocks_.resize(ranks);
    if (options.network.copies_block) arrived_.resize(ranks);
    std::mt19937_64 random(options.seed);
    for (size_t rank = 0; rank < ranks; ++rank) {
      const double skew = static_cast<double>(random() >> 11) * 0x1p-53 * options.start_skew;
      queue_.Push({std::llround(skew * 1e12), NumberOf(EventKind::kRankStart, rank)});
    }
  }

  SimulationOutcome Run(const SimulationProgress& progress) {
    for (int64_t instants = 0; !queue_.empty(); ++instants) {
      if (instants % kProgressStride == 0 && progress &&
          !progress(outcome_.finished_parts, parts_)) {
        outcome_.stopped = true;
        break;
      }
      now_ = queue_.top().time;
      while (!queue_.empty() && queue_.top().time == now_) {
        const Event event = queue_.top();
        queue_.Pop();
        Handle(event);
        ++outcome_.events;
      }
      for (size_t i = 0; i < ready_.size(); ++i) Advance(ready_[i]);
      ready_.clear();
      network_.Settle(now_, &queue_);
    }
    Collect();
    return std::move(outcome_);
  }

  const Rank& rank(int rank) const { return ranks_[static_cast<size_t>(rank)]; }

 private:
  // State that concerns time alone.
  struct Clock {
    TimePs copier_free = 0;
    TimePs since = 0;  // waits for `cause`
    WaitCause cause = WaitCause::kNothing;
    bool ready = false;
    bool copying = false;  // and so doing nothing else
    TimePs end = 0;
  };

  Rank& RankOf(const SlotRef& place) { return ranks_[static_cast<size_t>(place.rank)]; }
  Clock& ClockOf(int rank) { return clocks_[static_cast<size_t>(rank)]; }

  void Handle(const Event& event) {
    const auto kind = static_cast<EventKind>(event.number >> kKindShift);
    const auto of = static_cast<int32_t>(event.number >> kSlotBits & 0xffffffffu);
    const auto slot = static_cast<int32_t>(event.number & ((uint64_t{1} << kSlotBits) - 1));
    switch (kind) {
      case EventKind::kRankStart:
        ClockOf(of).since = now_;
        return MarkReady(of);
      case EventKind::kCopyEnd:
        return CopyEnded({of, slot});
      case EventKind::kFlowBegin:
        return BeginFlow(of);
      case EventKind::kFlowEnd:
        ended_.clear();
        network_.End(event, &ended_);
        for (const int32_t message : ended_) FlowEnded(message);
    }
  }

  void MarkReady(int rank) {
    Clock& clock = ClockOf(rank);
    if (clock.ready) return;
    clock.ready = true;
    ready_.push_back(rank);
  }

  // Lets a rank's engine say what may begin now.
  void Advance(int number) {
    Rank& rank = ranks_[static_cast<size_t>(number)];
    Clock& clock = ClockOf(number);
    clock.ready = false;
    if (clock.copying) return;
    Account(&clock);
    rank.Feed();
    int slot = 0;
    for (const LiveBucket* live = nullptr;
         !clock.copying && (live = rank.Next(&slot)) != nullptr;) {
      if (live->stage == Stage::kMoving) {
        Continue({number, slot});
      } else {
        const RankBucket& bucket = rank.bucket(*live);
        const bool gives = live->stage == Stage::kFilling && bucket.contribution_bytes > 0;
        StartCopy({number, slot}, gives ? bucket.contribution_bytes : bucket.bytes);
      }
    }
    const Blocked blocked = clock.copying ? Blocked::kNothingWaiting : rank.engine().blocked();
    clock.cause = blocked == Blocked::kBudget    ? WaitCause::kBudget
                  : blocked == Blocked::kChannel ? WaitCause::kChannel
                                                 : WaitCause::kNothing;
    if (rank.done()) clock.end = now_;
  }

  void Account(Clock* clock) {
    outcome_.waits[static_cast<size_t>(clock->cause)] += now_ - clock->since;
    clock->since = now_;
  }

  void Charge(HeldCause cause, TimePs time) { outcome_.held[static_cast<size_t>(cause)] += time; }

  void StartCopy(const SlotRef& place, int64_t bytes) {
    Clock& clock = ClockOf(place.rank);
    const TimePs begin = std::max(now_, clock.copier_free);
    const TimePs copy =
        copy_latency_ps_ +
        static_cast<TimePs>(std::ceil(static_cast<double>(bytes) * copy_ps_per_byte_));
    Charge(HeldCause::kCopyQueue, begin - now_);
    Charge(HeldCause::kCopy, copy);
    clock.copier_free = begin + copy;
    clock.copying = options_.network.copies_block;
    RankOf(place).live(place.slot).pending = 1;
    queue_.Push({clock.copier_free, NumberOf(EventKind::kCopyEnd, static_cast<uint64_t>(place.rank),
                                             static_cast<uint64_t>(place.slot))});
  }

  void CopyEnded(const SlotRef& place) {
    LiveBucket& live = RankOf(place).live(place.slot);
    live.pending = 0;
    ClockOf(place.rank).copying = false;
    if (live.stage == Stage::kMoving) {
      Continue(place);
    } else {
      FinishStage(place);
    }
    CatchUp(place.rank);
  }

  // Carries on what arrived while the rank was copying.
  void CatchUp(int rank) {
    if (!options_.network.copies_block) return;
    MarkReady(rank);
    std::deque<int32_t>& arrived = arrived_[static_cast<size_t>(rank)];
    while (!arrived.empty() && !ClockOf(rank).copying) {
      const SlotRef place = {rank, arrived.front()};
      arrived.pop_front();
      Continue(place);
    }
  }

  void FinishStage(const SlotRef& place) {
    if (RankOf(place).FinishStage(place.slot)) ++outcome_.finished_parts;
    MarkReady(place.rank);
  }

  // Carries a move on as far as it goes, then those later ones of its channel that waited for it.
  void Continue(SlotRef place) {
    while (true) {
      const int after = RankOf(place).After(place.slot);
      AdvanceBucket(place);
      // A move that is over does not wait, and has left its place.
      if (after == MoveOrder::kNone || !RankOf(place).live(after).waits) return;
      if (RankOf(place).live(place.slot).waits) return;
      place.slot = after;
      if (!ClockOf(place.rank).copying) continue;
      RankOf(place).live(after).waits = false;  // it is told when the copy is over
      arrived_[static_cast<size_t>(place.rank)].push_back(after);
      return;
    }
  }

  void AdvanceBucket(const SlotRef& place) {
    Rank& rank = RankOf(place);
    LiveBucket& live = rank.live(place.slot);
    while (live.pending == 0) {
      const MoveAction action = rank.NextAction(place.slot);
      if (action.kind == MoveKind::kWait) return;
      if (action.kind == MoveKind::kOver) return FinishStage(place);
      Begin(place, action);
    }
  }

  void Begin(const SlotRef& place, const MoveAction& action) {
    Rank& rank = RankOf(place);
    const LiveBucket& live = rank.live(place.slot);
    const RankBucket& bucket = rank.bucket(live);
    const RankChannel& channel = rank.channel(bucket);
    switch (action.kind) {
      case MoveKind::kGive:
      case MoveKind::kGiveSum:
        return Send(place, rank.Named(channel.owner), bucket.contribution_bytes);
      case MoveKind::kTake:
        return Receive(place, rank.peer(channel, channel.children + action.number),
                       bucket.contribution_bytes);
      case MoveKind::kFold:
        return Fold(place, channel, bucket.contribution_bytes);
      case MoveKind::kAdd: {
        // A sum that is complete is passed up: one more pass, if there are further levels.
        const bool passes_up =
            bucket.per_sum < channel.contributions && (action.number + 1) % bucket.per_sum == 0;
        return StartCopy(place, int64_t{bucket.contribution_bytes} * (passes_up ? 2 : 1));
      }
      case MoveKind::kPackOwn:
      case MoveKind::kCast:
        return StartCopy(place, bucket.contribution_bytes);
      case MoveKind::kReceive:
        return Receive(place, rank.Named(channel.parent), bucket.bytes);
      case MoveKind::kForward:
        for (int32_t i = 0; i < channel.children; ++i) {
          Send(place, rank.peer(channel, i), bucket.bytes);
        }
        return;
      case MoveKind::kWait:
      case MoveKind::kOver:
        return;
    }
  }

  // All contributions flow once all of them are there; adding them up is part of that.
  void Fold(const SlotRef& place, const RankChannel& channel, int32_t bytes) {
    Rank& rank = RankOf(place);
    LiveBucket& live = rank.live(place.slot);
    live.unmet = channel.contributions - (channel.own >= 0 ? 1 : 0);
    for (int32_t i = 0; i < channel.contributions; ++i) {
      const int peer = rank.peer(channel, channel.children + i);
      if (peer >= 0) Receive(place, peer, bytes);
    }
  }

  void Send(const SlotRef& place, int to, int32_t bytes) {
    Post(place, {{}, place.rank, to}, true, bytes);
  }
  void Receive(const SlotRef& place, int from, int32_t bytes) {
    Post(place, {{}, from, place.rank}, false, bytes);
  }

  // One side of a message is ready.
  void Post(const SlotRef& place, MessageKey key, bool sends, int32_t bytes) {
    Rank& rank = RankOf(place);
    LiveBucket& live = rank.live(place.slot);
    ++live.pending;
    key.id = rank.IdOf(rank.bucket(live));
    const auto [it, first] = half_ready_.try_emplace(key, HalfReady{place, now_});
    if (first) return;
    const HalfReady other = it->second;
    half_ready_.erase(it);
    Charge(HeldCause::kPartner, now_ - other.since);
    Message message;
    message.src = sends ? place : other.place;
    message.dst = sends ? other.place : place;
    message.bytes = bytes;
    message.since = now_;
    const int32_t index = Keep(message);
    if (!options_.network.folds) return Start(index);
    LiveBucket& receiver = RankOf(message.dst).live(message.dst.slot);
    if (receiver.unmet == 0) return Start(index);
    messages_[static_cast<size_t>(index)].before = std::exchange(receiver.met, index);
    if (--receiver.unmet > 0) return;
    int32_t met = std::exchange(receiver.met, -1);
    while (met >= 0) {
      const int32_t before = messages_[static_cast<size_t>(met)].before;
      Start(met);
      met = before;
    }
  }

  void Start(int32_t index) {
    const Message& message = messages_[static_cast<size_t>(index)];
    const TimePs latency = network_.LatencyPs(message.src.rank, message.dst.rank);
    if (latency == 0) return BeginFlow(index);
    queue_.Push({now_ + latency, NumberOf(EventKind::kFlowBegin, static_cast<uint64_t>(index))});
  }

  int32_t Keep(const Message& message) {
    if (free_messages_.empty()) {
      messages_.push_back(message);
      return static_cast<int32_t>(messages_.size() - 1);
    }
    const int32_t index = free_messages_.back();
    free_messages_.pop_back();
    messages_[static_cast<size_t>(index)] = message;
    return index;
  }

  void BeginFlow(int32_t index) {
    const Message& message = messages_[static_cast<size_t>(index)];
    network_.Start(message.src.rank, message.dst.rank, message.bytes, index);
  }

  void FlowEnded(int32_t index) {
    const Message message = messages_[static_cast<size_t>(index)];
    free_messages_.push_back(index);
    Charge(HeldCause::kWire, 2 * (now_ - message.since));
    for (const SlotRef& place : {message.src, message.dst}) {
      LiveBucket& live = RankOf(place).live(place.slot);
      if (--live.pending > 0) continue;
      if (ClockOf(place.rank).copying) {
        arrived_[static_cast<size_t>(place.rank)].push_back(place.slot);
      } else {
        Continue(place);
      }
    }
  }

  void Collect() {
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const Rank& rank = ranks_[i];
      Clock& clock = clocks_[i];
      if (!rank.done()) {
        ++outcome_.unfinished_ranks;
        clock.end = now_;
        Account(&clock);
      }
      const EngineCounters& counters = rank.engine().counters();
      RankOutcome of;
      of.peak_buckets = counters.held_buckets_peak;
      of.peak_operations = counters.operations_peak;
      of.peak_bytes = counters.staging_bytes_peak;
      of.channels = static_cast<int64_t>(rank.channels());
      of.end = clock.end;
      outcome_.ranks.push_back(of);
      outcome_.makespan = std::max(outcome_.makespan, clock.end);
    }
    outcome_.link_bound = network_.LinkBoundPs();
    if (!outcome_.stalled()) return;
    int described = 0;
    for (size_t i = 0; i < ranks_.size() && described < kDescribedRanks; ++i) {
      if (ranks_[i].done()) continue;
      absl::StrAppend(&outcome_.stall, "rank ", i, ": ", ranks_[i].engine().DescribeStall());
      ++described;
    }
  }

  struct HalfReady {
    SlotRef place;
    TimePs since = 0;
  };

  const SimulationOptions& options_;
  FlowNetwork network_;
  const TimePs copy_latency_ps_;
  const double copy_ps_per_byte_;
  std::vector<Rank> ranks_;
  std::vector<Clock> clocks_;
  std::vector<std::deque<int32_t>> arrived_;  // slots, of each rank; if copies block
  std::vector<int> ready_;                    // ranks that something has happened to
  absl::flat_hash_map<MessageKey, HalfReady> half_ready_;
  std::vector<Message> messages_;
  std::vector<int32_t> free_messages_;
  std::vector<int32_t> ended_;  // scratch
  EventQueue queue_;
  TimePs now_ = 0;
  int64_t parts_ = 0;
  SimulationOutcome outcome_;
};

}  // namespace

absl::StatusOr<SimulationOutcome> Simulate(const JobPlans& plans, const SimulationOptions& options,
                                           const SimulationProgress& progress) {
  Simulation simulation(plans, options);
  SimulationOutcome outcome = simulation.Run(progress);
  if (outcome.stopped || outcome.stalled()) return outcome;
  for (int rank = 0; rank < plans.ranks(); ++rank) {
    const int64_t delivered = simulation.rank(rank).delivered_bytes();
    if (delivered != plans.needed_bytes(rank)) {
      return absl::InternalError(absl::StrCat("rank ", rank, " was brought ", delivered,
                                              " bytes, but needs ", plans.needed_bytes(rank)));
    }
  }
  return outcome;
}

}  // namespace sluice::sim
