// The course of events.
#include "deadlock/world.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deadlock/exchanges.h"
#include "deadlock/plain_gate.h"
#include "deadlock/world_rank.h"
#include "engine/engine.h"

namespace sluice::deadlock {
namespace {

// A member of a bucket, as its rank knows it.
struct MemberRef {
  size_t rank = 0;
  size_t index = 0;
};

template <class Gate>
class World {
 public:
  World(const Job& job, const Rules& rules, Random order)
      : job_(job), rules_(rules), order_(order), members_(job.buckets.size()) {
    // At times one rank is much slower than the others.
    slow_rank_ = order_.OneIn(2) ? order_.Below(static_cast<size_t>(job.ranks)) : NoRank();
    Random* const own_order = rules.IsOff(Premise::kReductionOrder) ? &order_ : nullptr;
    for (const JobBucket& bucket : job.buckets) exchanges_.emplace_back(bucket, own_order);
    for (int r = 0; r < job.ranks; ++r) {
      ranks_.emplace_back(job, rules, r);
      const std::vector<JobPart>& parts = ranks_.back().feed().parts;
      for (size_t i = 0; i < parts.size(); ++i) {
        members_[parts[i].bucket].push_back({static_cast<size_t>(r), i});
      }
      unfinished_ += parts.size();
    }
    events_.resize(ranks_.size());
    is_stale_.assign(ranks_.size(), true);
  }

  Outcome Run(Keep keep) {
    Outcome outcome;
    WorldEvent event;
    while (unfinished_ > 0 && Choose(&event)) {
      ++outcome.events;
      if (keep == Keep::kTrace) outcome.trace.push_back(event);
      Apply(event);
    }
    outcome.complete = unfinished_ == 0;
    outcome.peak_slots = peak_slots_;
    if (keep == Keep::kTrace && !outcome.complete) outcome.waits = Waits();
    return outcome;
  }

 private:
  using Kind = WorldEvent::Kind;

  static constexpr size_t NoRank() { return static_cast<size_t>(-1); }

  // Draws one of the possible events, of a slow rank only when there are no others.
  bool Choose(WorldEvent* event) {
    size_t count = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (is_stale_[r]) FindEvents(r);
      is_stale_[r] = false;
      if (r != slow_rank_) count += events_[r].size();
    }
    if (count == 0) {
      if (slow_rank_ == NoRank() || events_[slow_rank_].empty()) return false;
      *event = events_[slow_rank_][order_.Below(events_[slow_rank_].size())];
      return true;
    }
    size_t chosen = order_.Below(count);
    for (size_t r = 0;; ++r) {
      if (r == slow_rank_) continue;
      if (chosen < events_[r].size()) {
        *event = events_[r][chosen];
        return true;
      }
      chosen -= events_[r].size();
    }
  }

  void FindEvents(size_t r) {
    const WorldRank<Gate>& rank = ranks_[r];
    const RankFeed<Gate>& feed = rank.feed();
    const int number = static_cast<int>(r);
    std::vector<WorldEvent>& events = events_[r];
    events.clear();
    const bool late = (job_.late_ranks >> r & 1U) != 0;
    if (feed.runs_started < job_.runs() && (!late || feed.HasEndedRunsBelow(feed.runs_started))) {
      events.push_back({Kind::kStart, number, 0});
    }
    for (int lane = 0; lane < job_.options.lanes && feed.runs_started > 0; ++lane) {
      const size_t next = feed.NextToFeed(lane);
      if (next < feed.parts.size() && feed.gate.CanSubmit(lane)) {
        events.push_back({Kind::kFeed, number, next});
      }
    }
    for (const size_t index : rank.active()) {
      if (CanFinish(rank, r, index)) events.push_back({Kind::kFinish, number, index});
      if (CanExchange(rank, r, index)) events.push_back({Kind::kExchange, number, index});
    }
    if (rank.device() != nullptr && rank.device()->CanTake()) {
      events.push_back({Kind::kTake, number, 0});
    }
  }

  bool CanFinish(const WorldRank<Gate>& rank, size_t r, size_t index) const {
    if (!rank.HasEntered(index)) return false;
    const JobPart& part = rank.part(index);
    return part.stage != Stage::kMoving ||
           (exchanges_[part.bucket].Done(MemberAt(part.bucket, r)) && AllMove(part.bucket));
  }

  // An exchange is an event of the first of its two members.
  bool CanExchange(const WorldRank<Gate>& rank, size_t r, size_t index) const {
    const JobPart& part = rank.part(index);
    if (part.stage != Stage::kMoving || !rank.HasEntered(index)) return false;
    const Exchanges& exchanges = exchanges_[part.bucket];
    const size_t member = MemberAt(part.bucket, r);
    if (exchanges.Done(member) || !exchanges.IsMutual(member)) return false;
    const size_t partner = exchanges.Partner(member);
    return member < partner && HasBegun(part.bucket, partner);
  }

  // Buckets list their members in another order than members_, which goes by rank.
  size_t MemberAt(size_t bucket, size_t r) const {
    const JobBucket& members = job_.buckets[bucket];
    size_t member = 0;
    while (members[member].rank != static_cast<int>(r)) ++member;
    return member;
  }

  bool HasBegun(size_t bucket, size_t member) const {
    const auto r = static_cast<size_t>(job_.buckets[bucket][member].rank);
    for (const MemberRef& place : members_[bucket]) {
      if (place.rank == r) return ranks_[r].HasBegunToMove(place.index);
    }
    return false;
  }

  bool AllMove(size_t bucket) const {
    const std::vector<MemberRef>& places = members_[bucket];
    return std::all_of(places.begin(), places.end(), [this](const MemberRef& place) {
      return ranks_[place.rank].HasBegunToMove(place.index);
    });
  }

  void Apply(const WorldEvent& event) {
    const auto r = static_cast<size_t>(event.rank);
    WorldRank<Gate>& rank = ranks_[r];
    switch (event.kind) {
      case Kind::kStart:
        rank.StartNextRun();
        break;
      case Kind::kFeed:
        rank.Feed(event.index);
        break;
      case Kind::kFinish:
        if (rank.Finish(event.index)) --unfinished_;
        break;
      case Kind::kExchange: {
        const size_t bucket = rank.part(event.index).bucket;
        exchanges_[bucket].CarryOut(MemberAt(bucket, r));
        break;
      }
      case Kind::kTake:
        rank.Take();
        break;
    }
    rank.Obey();
    peak_slots_ = std::max(peak_slots_, rank.feed().gate.counters().held_buckets);
    MarkStale(r);
  }

  // Whatever the rank has begun, its partners may go on now.
  void MarkStale(size_t r) {
    is_stale_[r] = true;
    for (const size_t index : ranks_[r].active()) {
      const JobPart& part = ranks_[r].part(index);
      if (part.stage != Stage::kMoving) continue;
      for (const MemberRef& place : members_[part.bucket]) is_stale_[place.rank] = true;
    }
  }

  std::vector<std::string> Waits() const {
    std::vector<std::string> waits;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (const JobPart& part : ranks_[r].feed().parts) {
        if (HasEnded(part.stage)) continue;
        const auto index = static_cast<size_t>(&part - ranks_[r].feed().parts.data());
        waits.push_back(absl::StrCat("rank ", r, ": bucket ", part.bucket, " ",
                                     part.under_way ? WaitOf(r, index) : "has no slot or turn"));
      }
    }
    return waits;
  }

  // What a stage that was commanded waits for.
  std::string WaitOf(size_t r, size_t index) const {
    const WorldRank<Gate>& rank = ranks_[r];
    const JobPart& part = rank.part(index);
    const std::string stage = StageName(part.stage);
    if (!rank.HasBytes(index)) return stage + ", finds no place in the arena";
    if (!rank.HasEntered(index)) {
      if (part.stage == Stage::kMoving) return stage + ", waits for the stream";
      const DeviceSlots& device = *rank.device();
      return absl::StrCat(stage, ", waits for a device slot; the consumer waits for bucket ",
                          rank.part(device.next_taken()).bucket);
    }
    const Exchanges& exchanges = exchanges_[part.bucket];
    const size_t member = MemberAt(part.bucket, r);
    if (exchanges.Done(member)) return stage + ", waits for the other members";
    return absl::StrCat(stage, ", waits to meet rank ",
                        job_.buckets[part.bucket][exchanges.Partner(member)].rank);
  }

  const Job& job_;
  const Rules rules_;
  Random order_;
  size_t slow_rank_ = NoRank();
  std::vector<WorldRank<Gate>> ranks_;
  std::vector<Exchanges> exchanges_;             // of every bucket
  std::vector<std::vector<MemberRef>> members_;  // of every bucket
  std::vector<std::vector<WorldEvent>> events_;  // of every rank: what can happen
  std::vector<bool> is_stale_;                   // of every rank: events_ may have changed
  size_t unfinished_ = 0;                        // over all ranks
  int peak_slots_ = 0;
};

}  // namespace

Outcome Play(const Job& job, const Rules& rules, Random order, Keep keep) {
  if (rules.rule == GateRule::kEscape) return World<Engine>(job, rules, order).Run(keep);
  return World<PlainGate>(job, rules, order).Run(keep);
}

}  // namespace sluice::deadlock
