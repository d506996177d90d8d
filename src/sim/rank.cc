// Feeding an engine from a plan that may be another rank's.
#include "sim/rank.h"

#include <algorithm>

#include "tensor/check.h"

namespace sluice::sim {

EngineOptions Rank::OptionsOf(const RankPlan& plan, int64_t slots, int max_in_flight,
                              int look_ahead) {
  const int64_t most = std::max<int64_t>(1, plan.peak_buckets_without_budget);
  EngineOptions options;
  options.max_in_flight = max_in_flight;
  options.slots = static_cast<int>(slots == 0 ? most : std::min(slots, most));
  const int64_t buckets = static_cast<int64_t>(plan.buckets.size());
  options.look_ahead = static_cast<int>(
      std::min(std::max<int64_t>(1, buckets), std::max<int64_t>(look_ahead, options.slots)));
  options.channels = static_cast<int>(
      std::min<int64_t>(static_cast<int64_t>(plan.channels.size()), options.look_ahead));
  return options;
}

Rank::Rank(const JobPlans& plans, int rank, int64_t slots, int max_in_flight, int look_ahead,
           bool folds)
    : plan_(&plans.plan(rank)),
      turn_(plans.turn(rank)),
      folds_(folds),
      engine_(OptionsOf(*plan_, slots, max_in_flight, look_ahead)),
      live_(static_cast<size_t>(engine_.options().slots)),
      engine_channel_(plan_->channels.size(), -1),
      buckets_in_(static_cast<size_t>(engine_.options().channels)) {
  order_.Reserve(buckets_in_.size(), live_.size());
  for (int i = engine_.options().channels; i-- > 0;) free_channels_.push_back(i);
}

MoveShape Rank::ShapeOf(const RankBucket& bucket) const {
  const RankChannel& of = channel(bucket);
  MoveShape shape;
  shape.added = of.contributions;
  shape.own = of.own;
  shape.per_sum = bucket.per_sum;
  shape.children = of.children;
  shape.gives = of.owner >= 0 && of.contributions == 0;
  shape.folds = Folds(bucket);
  // A fold takes rows as well.
  shape.own_lies = bucket.own_lies || (shape.folds && bucket.own_in_rows);
  shape.own_goes_last = bucket.own_goes_last;
  shape.gives_sum = of.owner >= 0 && of.contributions > 0;
  shape.casts = bucket.casts;
  shape.has_parent = of.parent >= 0;
  return shape;
}

StageSet Rank::StagesOf(const RankBucket& bucket) const {
  if (bucket.role == Role::kLocal) return kStageDrain;
  StageSet stages = kStageMove;
  if (bucket.packs) stages |= kStageFill;
  if (bucket.unpacks && !(Folds(bucket) && bucket.sum_in_place)) stages |= kStageDrain;
  return stages;
}

// A sum that is made in place takes a slot only for its own contribution, where that has to be
// packed.
int64_t Rank::StagingBytes(const RankBucket& bucket) const {
  if (!Folds(bucket) || !bucket.sum_in_place) return bucket.staging_bytes;
  const MoveShape shape = ShapeOf(bucket);
  return shape.own >= 0 && !shape.own_lies ? bucket.staging_bytes : 0;
}

// Ids of one phase are in order of ranks, which another rank's are not once they are turned.
size_t Rank::NextIndex() {
  if (tied_next_ < tied_.size()) return tied_[tied_next_++];
  if (turn_.shift == 0) return next_++;
  tied_.clear();
  do {
    tied_.push_back(next_);
  } while (plan_->buckets[next_++].tied_with_next);
  std::sort(tied_.begin(), tied_.end(), [this](size_t a, size_t b) {
    return IdOf(plan_->buckets[a]) < IdOf(plan_->buckets[b]);
  });
  tied_next_ = 1;
  return tied_[0];
}

int Rank::TakeChannel(int32_t channel) {
  int32_t& number = engine_channel_[static_cast<size_t>(channel)];
  if (number < 0) {
    SLUICE_CHECK(!free_channels_.empty(), "more live channels than live buckets");
    number = free_channels_.back();
    free_channels_.pop_back();
  }
  ++buckets_in_[static_cast<size_t>(number)];
  return number;
}

void Rank::Feed() {
  while ((next_ < plan_->buckets.size() || tied_next_ < tied_.size()) && engine_.CanSubmit()) {
    const size_t index = NextIndex();
    const RankBucket& bucket = plan_->buckets[index];
    Submission submission;
    submission.id = IdOf(bucket);
    submission.channel = TakeChannel(bucket.channel);
    submission.stages = StagesOf(bucket);
    submission.staging_bytes = StagingBytes(bucket);
    submission.operations = bucket.role == Role::kLocal ? 0 : std::max(1, channel(bucket).children);
    if (Folds(bucket)) {
      submission.operations = std::max(submission.operations, 1 + channel(bucket).contributions);
    }
    submission.cookie = index;
    engine_.Submit(submission);
  }
}

LiveBucket* Rank::Next(int* slot) {
  Command command;
  if (!engine_.Next(&command)) return nullptr;
  *slot = command.slot;
  LiveBucket& live = live_[static_cast<size_t>(*slot)];
  live = LiveBucket();
  live.ticket = command.ticket;
  live.index = static_cast<int32_t>(command.cookie);
  live.stage = command.stage;
  if (live.stage != Stage::kMoving) return &live;
  const RankBucket& moving = bucket(live);
  const int32_t number = engine_channel_[static_cast<size_t>(moving.channel)];
  const absl::Status status = order_.Add(static_cast<size_t>(*slot), number, IdOf(moving));
  SLUICE_CHECK(status.ok(), "moves of a channel come out of order");
  return &live;
}

MoveAction Rank::NextAction(int slot) {
  LiveBucket& live = live_[static_cast<size_t>(slot)];
  const size_t at = static_cast<size_t>(slot);
  const MoveAction action =
      sluice::NextAction(ShapeOf(bucket(live)), order_.RoundsAllowed(at), &live.move);
  live.waits = action.kind == MoveKind::kWait;
  const absl::Status status = order_.Begin(at, live.move.rounds);
  SLUICE_CHECK(status.ok(), "a round begins out of order");
  return action;
}

bool Rank::FinishStage(int slot) {
  const LiveBucket& live = live_[static_cast<size_t>(slot)];
  const RankBucket& ended = bucket(live);
  const bool last = NextStage(live.stage, StagesOf(ended)) == Stage::kDone;
  if (live.stage == Stage::kMoving) order_.End(static_cast<size_t>(slot));
  engine_.Finish(live.ticket);
  if (!last) return false;
  int32_t& number = engine_channel_[static_cast<size_t>(ended.channel)];
  if (--buckets_in_[static_cast<size_t>(number)] == 0) {
    free_channels_.push_back(number);
    number = -1;
  }
  delivered_bytes_ += ended.stay_bytes;
  return true;
}

}  // namespace sluice::sim
