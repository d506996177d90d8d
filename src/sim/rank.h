// One simulated rank: the engine that a real rank would run, fed from its plan. Also what is known
// of the buckets that the engine has let in. Has no notion of time.
#ifndef SLUICE_SRC_SIM_RANK_H_
#define SLUICE_SRC_SIM_RANK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/engine.h"
#include "engine/move.h"
#include "engine/move_order.h"
#include "sim/job_plans.h"

namespace sluice::sim {

// A bucket that the engine has let in.
struct LiveBucket {
  Ticket ticket = 0;
  int32_t index = 0;    // into the plan's buckets
  int32_t pending = 0;  // copies and messages that its stage waits for
  int32_t unmet = 0;    // of a fold: messages that wait for their other side
  int32_t met = -1;     // and the last one that does not
  Stage stage = Stage::kWaiting;
  bool waits = false;  // for the next round of the move before it in its channel
  MoveState move;
};

class Rank {
 public:
  // `slots`: the budget, 0 for no limit. `look_ahead`: the engine's, at most. `folds`: ranks of a
  // node can fold. `plans` must outlive this object.
  Rank(const JobPlans& plans, int rank, int64_t slots, int max_in_flight, int look_ahead,
       bool folds);

  // Hands the engine what it has room for.
  void Feed();
  // The bucket that the engine commands next, or null. The bucket keeps its place until its end.
  LiveBucket* Next(int* slot);
  // The next action in the move of the bucket in `slot`, of which nothing is pending.
  MoveAction NextAction(int slot);
  // The slot of the move after it in its channel, or MoveOrder::kNone.
  int After(int slot) const { return order_.After(static_cast<size_t>(slot)); }
  // The stage of the bucket in `slot` is over. True if the bucket has ended.
  bool FinishStage(int slot);

  LiveBucket& live(int slot) { return live_[static_cast<size_t>(slot)]; }
  const RankBucket& bucket(const LiveBucket& live) const {
    return plan_->buckets[static_cast<size_t>(live.index)];
  }
  const RankChannel& channel(const RankBucket& bucket) const {
    return plan_->channels[static_cast<size_t>(bucket.channel)];
  }
  // Peer number `i` of a channel, as this rank knows it; -1 for itself.
  int peer(const RankChannel& channel, int32_t i) const {
    return turn_.Of(plan_->peers[static_cast<size_t>(channel.first_peer) + static_cast<size_t>(i)]);
  }
  int Named(int32_t rank) const { return turn_.Of(rank); }
  BucketId IdOf(const RankBucket& bucket) const {
    return turn_.shift == 0 ? bucket.id : TurnedId(bucket.id, turn_);
  }

  const Engine& engine() const { return engine_; }
  bool done() const { return next_ == plan_->buckets.size() && engine_.idle(); }
  size_t channels() const { return plan_->channels.size(); }
  int64_t delivered_bytes() const { return delivered_bytes_; }

 private:
  static EngineOptions OptionsOf(const RankPlan& plan, int64_t slots, int max_in_flight,
                                 int look_ahead);
  bool Folds(const RankBucket& bucket) const { return folds_ && bucket.may_fold; }
  MoveShape ShapeOf(const RankBucket& bucket) const;
  StageSet StagesOf(const RankBucket& bucket) const;
  int64_t StagingBytes(const RankBucket& bucket) const;
  size_t NextIndex();
  int TakeChannel(int32_t channel);

  const RankPlan* plan_;
  Turn turn_;
  bool folds_;
  size_t next_ = 0;  // buckets before it were fed, or are in tied_
  size_t tied_next_ = 0;
  std::vector<size_t> tied_;  // of equal phase, in the order of this rank's ids
  Engine engine_;
  MoveOrder order_;
  std::vector<LiveBucket> live_;  // by slot
  // Engine channels are used again: a rank has many more than are ever live at once.
  std::vector<int32_t> engine_channel_;  // by plan channel; -1: none
  std::vector<int32_t> free_channels_;
  std::vector<int32_t> buckets_in_;  // by engine channel: submitted and not ended
  int64_t delivered_bytes_ = 0;
};

}  // namespace sluice::sim

#endif  // SLUICE_SRC_SIM_RANK_H_
