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

Rank::Rank(const JobPlans& plans, int rank, int64_t slots, int max_in_flight, int look_ahead)
    : plan_(&plans.plan(rank)),
      turn_(plans.turn(rank)),
      engine_(OptionsOf(*plan_, slots, max_in_flight, look_ahead)),
      live_(static_cast<size_t>(engine_.options().slots)),
      engine_channel_(plan_->channels.size(), -1),
      buckets_in_(static_cast<size_t>(engine_.options().channels)) {
  for (int i = engine_.options().channels; i-- > 0;) free_channels_.push_back(i);
}

StageSet Rank::StagesOf(const RankBucket& bucket) {
  if (bucket.role == Role::kLocal) return kStageDrain;
  StageSet stages = kStageMove;
  if (bucket.packs) stages |= kStageFill;
  if (bucket.unpacks) stages |= kStageDrain;
  return stages;
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
    submission.staging_bytes = bucket.staging_bytes;
    submission.operations = bucket.role == Role::kLocal ? 0 : std::max(1, channel(bucket).children);
    submission.cookie = index;
    engine_.Submit(submission);
  }
}

LiveBucket* Rank::Next(int* slot) {
  Command command;
  if (!engine_.Next(&command)) return nullptr;
  *slot = command.slots[0];
  LiveBucket& live = live_[static_cast<size_t>(*slot)];
  live = LiveBucket();
  live.ticket = command.ticket;
  live.index = static_cast<int32_t>(command.cookie);
  live.stage = command.stage;
  return &live;
}

bool Rank::FinishStage(int slot) {
  const LiveBucket& live = live_[static_cast<size_t>(slot)];
  const RankBucket& ended = bucket(live);
  const bool last = NextStage(live.stage, StagesOf(ended)) == Stage::kDone;
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
