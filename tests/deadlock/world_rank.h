// One rank of a world: its feed, its resources beside the gate, and how its buckets stand with
// them.
#ifndef SLUICE_TESTS_DEADLOCK_WORLD_RANK_H_
#define SLUICE_TESTS_DEADLOCK_WORLD_RANK_H_

#include <algorithm>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "deadlock/job.h"
#include "deadlock/plain_gate.h"
#include "deadlock/rank_feed.h"
#include "deadlock/rank_resources.h"
#include "deadlock/rules.h"
#include "engine/engine.h"

namespace sluice::deadlock {

template <class Gate>
Gate MakeGate(const EngineOptions& options, GateRule rule) {
  if constexpr (std::is_same_v<Gate, PlainGate>) {
    return PlainGate(options,
                     rule == GateRule::kPlain ? PlainRule::kRoundRobin : PlainRule::kHeadOfLine);
  } else {
    return Gate(options);
  }
}

template <class Gate>
class WorldRank {
 public:
  WorldRank(const Job& job, const Rules& rules, int rank)
      : WorldRank(job, rules, rank, ViewOf(job, rank, rules.IsOff(Premise::kStartOrder))) {}

  const RankFeed<Gate>& feed() const { return feed_; }
  const JobPart& part(size_t index) const { return feed_.parts[index]; }
  // The buckets with a stage under way.
  const std::vector<size_t>& active() const { return active_; }

  void StartNextRun() {
    const int run = feed_.runs_started;
    feed_.StartNextRun();
    if constexpr (std::is_same_v<Gate, PlainGate>) {
      for (size_t i = 0; i < feed_.parts.size(); ++i) {
        if (feed_.parts[i].run == run) feed_.Feed(i);
      }
    }
  }
  void Feed(size_t index) { feed_.Feed(index); }

  // Begins what the gate commands.
  void Obey() {
    Command command;
    while (feed_.gate.Next(&command)) {
      JobPart& part = feed_.parts[command.cookie];
      if (part.stage == Stage::kWaiting) waiting_for_bytes_.push_back(command.cookie);
      part.stage = command.stage;
      part.under_way = true;
      active_.push_back(command.cookie);
      if (HasBytes(command.cookie)) Enter(command.cookie);
    }
    PlaceBytes();
    Launch();
    Grant();
  }

  // True if the member's part in the move goes on.
  bool HasBegunToMove(size_t index) const {
    const Stage stage = part(index).stage;
    return stage > Stage::kMoving || (stage == Stage::kMoving && has_entered_[index]);
  }
  // True if the stage under way waits for nothing at this rank.
  bool HasEntered(size_t index) const { return has_entered_[index]; }
  bool HasBytes(size_t index) const {
    return std::find(waiting_for_bytes_.begin(), waiting_for_bytes_.end(), index) ==
           waiting_for_bytes_.end();
  }
  const DeviceSlots* device() const { return device_ ? &*device_ : nullptr; }

  // Ends the stage; true if the bucket has ended with it.
  bool Finish(size_t index) {
    JobPart& part = feed_.parts[index];
    std::erase(active_, index);
    part.under_way = false;
    has_entered_[index] = false;
    if (part.stage == Stage::kMoving && stream_) stream_->Ended();
    if (part.stage == Stage::kDraining && device_) device_->Filled(index);
    const bool done = NextStage(part.stage, part.member.stages) == Stage::kDone;
    if (done) part.stage = Stage::kDone;
    if (done && arena_) arena_->Give(place_[index]);
    feed_.gate.Finish(part.ticket);
    return done;
  }

  void Take() { device_->Take(); }

 private:
  WorldRank(const Job& job, const Rules& rules, int rank, RankView view)
      : feed_{.gate = MakeGate<Gate>(view.options, rules.rule),
              .parts = std::move(view.parts),
              .lane = std::move(view.lane)},
        has_entered_(feed_.parts.size()) {
    if (rules.rule != GateRule::kEscape) return;
    if (rules.IsOff(Premise::kSlots)) {
      arena_.emplace(job.options.slots * kSlotBytes);
      place_.resize(feed_.parts.size());
      for (const JobPart& part : feed_.parts) bytes_.push_back(job.bytes[part.bucket]);
    }
    if (job.ordered_transport) {
      stream_.emplace(PartsWith(kStageMove), !rules.IsOff(Premise::kGroupUnit));
    }
    const int slots = job.device_slots.empty() ? 0 : job.device_slots[static_cast<size_t>(rank)];
    if (slots > 0) {
      device_.emplace(slots, PartsWith(kStageDrain), !rules.IsOff(Premise::kDeviceSlotOrder));
    }
  }

  std::vector<size_t> PartsWith(StageSet stage) const {
    std::vector<size_t> with;
    for (size_t i = 0; i < feed_.parts.size(); ++i) {
      if ((feed_.parts[i].member.stages & stage) != 0) with.push_back(i);
    }
    return with;
  }

  // Gives bytes to the buckets that wait for them, the smallest first, as far as they fit.
  void PlaceBytes() {
    std::vector<size_t> waiting;
    std::sort(waiting_for_bytes_.begin(), waiting_for_bytes_.end());
    for (const size_t index : std::exchange(waiting_for_bytes_, {})) {
      const std::optional<int> begin = arena_ ? arena_->Take(bytes_[index]) : 0;
      if (!begin) {
        waiting.push_back(index);
        continue;
      }
      if (arena_) place_[index] = *begin;
      Enter(index);
    }
    waiting_for_bytes_ = std::move(waiting);
  }

  // The stage under way can begin, but for the stream or the device slots.
  void Enter(size_t index) {
    const Stage stage = part(index).stage;
    if (stage == Stage::kMoving && stream_) {
      stream_->Ready(index);
    } else if (stage == Stage::kDraining && device_) {
      device_->Ask(index);
    } else {
      has_entered_[index] = true;
    }
  }

  void Launch() {
    if (!stream_) return;
    for (const size_t index : stream_->Launch()) has_entered_[index] = true;
  }

  void Grant() {
    if (!device_) return;
    while (const std::optional<size_t> index = device_->Grant()) has_entered_[*index] = true;
  }

  RankFeed<Gate> feed_;
  std::vector<size_t> active_;
  std::vector<bool> has_entered_;  // of every bucket: HasEntered
  std::vector<size_t> waiting_for_bytes_;
  std::optional<FirstFitArena> arena_;
  std::vector<int> bytes_;  // of every bucket, and where they are in the arena; if there is one
  std::vector<int> place_;
  std::optional<LaunchStream> stream_;
  std::optional<DeviceSlots> device_;
};

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_WORLD_RANK_H_
