// Takes in runs, feeds their buckets, and carries them through their stages.
#include "session/transfer/runner.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "session/base/backoff.h"
#include "session/base/carrier_steps.h"
#include "tensor/check.h"
#include "transport/deadline.h"

namespace sluice {
namespace {

// Buckets submitted between two looks at the transport.
constexpr int kFeedBatch = 256;
// How long staging is kept for a transport in groups that has failed: it ends all by itself, but
// not at once.
constexpr absl::Duration kGroupsEndTime = absl::Seconds(1);

// Bytes that are added up on the way were received, and are sent: any stage.
BatchStage BatchStageOf(Stage stage) {
  switch (stage) {
    case Stage::kFilling:
      return BatchStage::kFill;
    case Stage::kDraining:
      return BatchStage::kDrain;
    default:
      return BatchStage::kAny;
  }
}

}  // namespace

Runner::Runner(std::unique_ptr<Device> device, std::unique_ptr<Transport> transport, int64_t slots,
               int max_in_flight, const Trace& trace)
    : slots_(slots),
      max_in_flight_(max_in_flight),
      device_(std::move(device)),
      carrier_(device_.get(), std::move(transport)),
      trace_(trace),
      in_groups_(carrier_.transport()->traits().in_groups),
      lanes_(kMaxLanes) {}

Runner::~Runner() {
  const Engine* const engine = carrier_.engine();
  if (in_groups_ && engine != nullptr && !engine->status().ok()) {
    const Deadline deadline(kGroupsEndTime);
    Backoff backoff;
    for (; carrier_.outstanding_messages() > 0 && !deadline.Passed(); backoff.Pause()) Settle();
  }
  // The network may still write into staging: memory that outlives the process's use of it is
  // better than memory that is somebody else's by then.
  if (carrier_.outstanding_messages() > 0) staging_.Abandon();
}

void Runner::Add(TransferRun* run) {
  if (runs_.empty()) last_time_ns_ = MonotonicNs();
  runs_.push_back(run);
  if (run->transfer().plan().buckets.empty()) return;
  Lane& lane = LaneOf(*run);
  lane.push_back(run);
  if (lane.size() == 1) AnnounceFirst(run->lane());
}

void Runner::Remove(TransferRun* run) {
  if (run->in_stream()) run->HandOver(&caller_marks_);
  runs_.erase(std::remove(runs_.begin(), runs_.end(), run), runs_.end());
  Lane& lane = LaneOf(*run);
  const bool first = !lane.empty() && lane.front() == run;
  lane.erase(std::remove(lane.begin(), lane.end(), run), lane.end());
  if (first) AnnounceFirst(run->lane());
}

// Other lanes have to leave room for what this one is going to bring.
void Runner::AnnounceFirst(int lane) {
  Engine* const engine = carrier_.engine();
  if (lane_count_ == 1 || !engine->status().ok()) return;
  const Lane& runs = lanes_[static_cast<size_t>(lane)];
  if (runs.empty()) {
    engine->Close(lane);
    return;
  }
  const TransferRun& run = *runs.front();
  engine->Announce(
      lane, run.transfer().plan().buckets.front().id.WithRun(static_cast<uint64_t>(run.id())));
}

absl::StatusOr<bool> Runner::Poll() {
  if (runs_.empty() && !busy()) return false;
  KeepTime();
  return carrier_.Poll(this);
}

absl::StatusOr<Carrier::Fed> Runner::Feed() {
  if (trace_.recorder != nullptr) TraceDevice();
  for (int lane = 0; lane < lane_count_; ++lane) {
    if (!lanes_[static_cast<size_t>(lane)].empty()) FeedLane(lane);
  }
  return Carrier::Fed::kNothing;
}

void Runner::FeedLane(int lane) {
  Engine* const engine = carrier_.engine();
  Lane& runs = lanes_[static_cast<size_t>(lane)];
  for (int i = 0; i < kFeedBatch && engine->CanSubmit(lane);) {
    TransferRun* const run = runs.front();
    if (run->CanFeed()) {
      if (in_groups_ && !groups_.MayFeed(*run, engine->options().slots)) return;
      const size_t index = run->next_bucket();
      Submission submission = BucketWork::SubmissionOf(*run, index);
      run->Fed();
      engine->Submit(submission);
      ++i;
    }
    if (run->fed()) {
      runs.erase(runs.begin());
      AnnounceFirst(lane);
    } else if (!run->CanFeed()) {
      return;
    }
    if (runs.empty()) return;
  }
}

Carrier::Admission Runner::Admit(size_t slot, const Command& command) {
  const int64_t id = BucketWork::RunOf(command.cookie);
  const auto run = std::find_if(runs_.begin(), runs_.end(),
                                [id](const TransferRun* each) { return each->id() == id; });
  SLUICE_CHECK(run != runs_.end(), "a command of no run");
  BucketWork& work = held_[slot].work;
  work.Admit(*run, BucketWork::IndexOf(command.cookie),
             staging_.data() + static_cast<int64_t>(slot) * slot_bytes_);
  if (in_groups_) groups_.Admitted(*run, work.index());
  const size_t channel = static_cast<size_t>(work.bucket().channel);
  return {work.stages(), (*run)->transfer().engine_channels[channel]};
}

absl::Status Runner::Begin(size_t slot, Stage stage) {
  TraceBegin(&held_[slot], stage);
  return Continue(slot, stage);
}

absl::Status Runner::Continue(size_t slot, Stage stage) {
  if (stage == Stage::kMoving) return AdvanceChannel(slot);
  return AdvanceBucket(slot, stage, 0);
}

// Continues a move, then those later ones of its channel that waited for it.
absl::Status Runner::AdvanceChannel(size_t slot) {
  while (true) {
    const int after = carrier_.order()->After(slot);
    const int rounds_max = carrier_.order()->RoundsAllowed(slot);
    absl::Status status = AdvanceBucket(slot, Stage::kMoving, rounds_max);
    if (!status.ok() || after == MoveOrder::kNone || held_[slot].work.waits()) return status;
    if (!held_[static_cast<size_t>(after)].work.waits()) return status;
    slot = static_cast<size_t>(after);
  }
}

// Does what is next of a stage; tells the engine if nothing is.
absl::Status Runner::AdvanceBucket(size_t slot, Stage stage, int rounds_max) {
  BucketWork& work = held_[slot].work;
  absl::Status status =
      work.Next(stage, rounds_max, carrier_.OperationsOf(slot, BatchStageOf(stage)));
  if (status.ok() && stage == Stage::kMoving) {
    status = carrier_.order()->Begin(slot, work.rounds());
  }
  if (!status.ok()) return carrier_.Fail(slot, status);
  if (carrier_.pending(slot) > 0 || work.waits()) return absl::OkStatus();
  return carrier_.EndStage(slot, this);
}

void Runner::StageOver(size_t slot, Stage stage, bool last) {
  TraceEnd(slot, stage);
  if (!last) return;
  BucketWork& work = held_[slot].work;
  TransferRun* const run = work.run();
  if (in_groups_) groups_.Ended(run, work.index());
  // A run in a stream need not wait until the device has come so far: it may be gone by then.
  if (!carrier_.in_stream_order() || !run->in_stream()) return;
  const size_t index = work.index();
  work.Clear();
  run->BucketDone(index);
}

absl::Status Runner::BucketOver(size_t slot) {
  BucketWork& work = held_[slot].work;
  TransferRun* const run = work.run();
  if (run == nullptr) return absl::OkStatus();
  const size_t index = work.index();
  work.Clear();
  run->BucketDone(index);
  return absl::OkStatus();
}

BucketId Runner::Freeze(TransferRun* run) {
  if (run->transfer().plan().buckets.empty()) return BucketId();
  run->Freeze();
  return carrier_.engine()->Freeze(run->lane(), static_cast<uint64_t>(run->id()));
}

void Runner::Cut(TransferRun* run, const BucketId& last) {
  run->CutAt(last);
  if (in_groups_) groups_.Cut(*run);
  if (run->transfer().plan().buckets.empty()) return;
  carrier_.engine()->Thaw(run->lane(), static_cast<uint64_t>(run->id()), last);
  Lane& lane = LaneOf(*run);
  if (!run->fed() || lane.empty()) return;
  const bool first = lane.front() == run;
  lane.erase(std::remove(lane.begin(), lane.end(), run), lane.end());
  if (first) AnnounceFirst(run->lane());
}

void Runner::Poison(const absl::Status& status) { carrier_.Poison(status); }

bool Runner::Settle() { return carrier_.Settle(true, this); }

void Runner::KeepTime() {
  const int64_t now_ns = MonotonicNs();
  const int64_t passed_ns = now_ns - std::exchange(last_time_ns_, now_ns);
  running_ns_ += passed_ns;
  if (carrier_.engine()->blocked() == Blocked::kBudget) budget_wait_ns_ += passed_ns;
}

}  // namespace sluice
