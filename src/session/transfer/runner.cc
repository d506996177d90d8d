// The loop between engine, device and transport.
#include "session/runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/clock.h"
#include "session/operation_cookie.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// Buckets submitted between two looks at the transport.
constexpr int kFeedBatch = 256;
// Steps of one Poll, so that it returns to the caller now and then.
constexpr int kStepsPerPoll = 32;
constexpr size_t kEventBatch = 64;

}  // namespace

Runner::Runner(std::unique_ptr<Device> device, std::unique_ptr<Transport> transport, int64_t slots,
               int max_in_flight, TraceRecorder* trace, int device_track)
    : slots_(slots),
      max_in_flight_(max_in_flight),
      device_(std::move(device)),
      transport_(std::move(transport)),
      trace_(trace),
      device_track_(device_track),
      in_stream_order_(transport_->traits().in_stream_order),
      in_groups_(transport_->traits().in_groups),
      copies_(device_.get(), in_stream_order_),
      events_(kEventBatch),
      copied_(Device::kMaxOutstanding),
      lanes_(kMaxLanes) {}

Runner::~Runner() {
  // The network may still write into staging: memory that outlives the process's use of it is
  // better than memory that is somebody else's by then.
  if (transport_->outstanding() > 0) staging_.Abandon();
  // What the device still does may be in staging, and may wait for what the transport gives up.
  transport_.reset();
  device_.reset();
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
  runs_.erase(std::remove(runs_.begin(), runs_.end(), run), runs_.end());
  Lane& lane = LaneOf(*run);
  const bool first = !lane.empty() && lane.front() == run;
  lane.erase(std::remove(lane.begin(), lane.end(), run), lane.end());
  if (first) AnnounceFirst(run->lane());
}

// Other lanes have to leave room for what this one is going to bring.
void Runner::AnnounceFirst(int lane) {
  if (lane_count_ == 1 || !engine_->status().ok()) return;
  const Lane& runs = lanes_[static_cast<size_t>(lane)];
  if (runs.empty()) {
    engine_->Close(lane);
    return;
  }
  const TransferRun& run = *runs.front();
  engine_->Announce(
      lane, run.transfer().plan().buckets.front().id.WithRun(static_cast<uint64_t>(run.id())));
}

absl::StatusOr<bool> Runner::Poll() {
  if (runs_.empty() && !busy()) return false;
  KeepTime();
  bool moved = false;
  for (int step = 0; step < kStepsPerPoll; ++step) {
    absl::StatusOr<bool> stepped = Step();
    if (!stepped.ok()) {
      engine_->Poison(stepped.status());
      return stepped.status();
    }
    if (!*stepped) break;
    moved = true;
  }
  return moved;
}

// Looks at the transport between any two copies: a rendezvous makes progress only then.
absl::StatusOr<bool> Runner::Step() {
  const absl::StatusOr<bool> passed = PollStreams();
  if (!passed.ok()) return passed.status();
  absl::StatusOr<bool> moved = PollTransport();
  if (!moved.ok()) return moved;
  absl::StatusOr<bool> copied = PollDevice();
  if (!copied.ok()) return copied;
  Feed();
  bool commanded = false;
  commanded_all_ = false;
  Command command;
  while (true) {
    commanded_all_ = !engine_->Next(&command);
    if (commanded_all_) break;
    commanded = true;
    if (absl::Status status = CarryOut(command); !status.ok()) return status;
    if (command.stage != Stage::kMoving) break;
  }
  if (absl::Status status = FlushMessages(); !status.ok()) return status;
  if (absl::Status status = endings_.Mark(&copies_); !status.ok()) return status;
  return *passed || *moved || *copied || commanded;
}

absl::StatusOr<bool> Runner::PollTransport() {
  // What has been handed out in stream order may still fail.
  if (transport_->outstanding() == 0 && endings_.marks() == 0) return false;
  const absl::StatusOr<int> count = transport_->Poll(absl::MakeSpan(events_));
  if (!count.ok()) return count.status();
  absl::Status failure;
  for (int i = 0; i < *count; ++i) {
    const TransportEvent& event = events_[static_cast<size_t>(i)];
    const size_t slot = FindWork(event.cookie);
    int* const pending = held_[slot].work.pending();
    --*pending;
    if (!event.status.ok()) failure.Update(Explain(event.status, event.cookie));
    if (*pending > 0) continue;
    if (!failure.ok() || !engine_->status().ok()) {
      if (failure.ok()) failure = engine_->status();
      engine_->Fail(TicketOf(event.cookie), failure);
      continue;
    }
    failure.Update(Continue(slot, held_[slot].stage));
  }
  if (!failure.ok()) return failure;
  return *count > 0;
}

absl::StatusOr<bool> Runner::PollDevice() {
  if (copies_.outstanding() == 0) return false;
  const absl::StatusOr<int> count = copies_.Poll(absl::MakeSpan(copied_));
  if (!count.ok()) return count.status();
  if (trace_ != nullptr) TraceDevice();
  absl::Status failure;
  for (int i = 0; i < *count; ++i) {
    const uint64_t cookie = copied_[static_cast<size_t>(i)];
    if (cookie == kMarkCookie) {
      // What has failed on the network is not done, wherever the device is.
      const absl::Status network = transport_->Poll({}).status();
      if (!network.ok()) engine_->Poison(network);
      failure.Update(network);
      endings_.TakeMark(&*engine_);
      continue;
    }
    const size_t slot = FindWork(cookie);
    int* const pending = held_[slot].work.pending();
    if (--*pending > 0) continue;
    if (!failure.ok() || !engine_->status().ok()) {
      engine_->Fail(TicketOf(cookie), failure.ok() ? engine_->status() : failure);
      continue;
    }
    failure.Update(Continue(slot, held_[slot].stage));
  }
  if (!failure.ok()) return failure;
  return *count > 0;
}

size_t Runner::FindWork(uint64_t cookie) const {
  const size_t slot = SlotOf(cookie);
  SLUICE_CHECK(held_[slot].work.ticket() == TicketOf(cookie), "an operation of no bucket");
  return slot;
}

void Runner::Feed() {
  for (int lane = 0; lane < lane_count_; ++lane) {
    if (!lanes_[static_cast<size_t>(lane)].empty()) FeedLane(lane);
  }
}

void Runner::FeedLane(int lane) {
  Lane& runs = lanes_[static_cast<size_t>(lane)];
  for (int i = 0; i < kFeedBatch && engine_->CanSubmit(lane);) {
    TransferRun* const run = runs.front();
    if (run->CanFeed()) {
      if (in_groups_ && !groups_.MayFeed(*run, engine_->options().slots)) return;
      const size_t index = run->next_bucket();
      Submission submission = BucketWork::SubmissionOf(*run, index);
      run->Fed();
      engine_->Submit(submission);
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

absl::Status Runner::CarryOut(const Command& command) {
  // What can already cross should not wait for a copy.
  if (command.stage != Stage::kMoving) {
    if (absl::Status status = FlushMessages(); !status.ok()) return status;
  }
  const size_t slot = static_cast<size_t>(command.slots[0]);
  Held& held = held_[slot];
  if (held.work.run() == nullptr || held.work.ticket() != command.ticket) {
    const int64_t id = BucketWork::RunOf(command.cookie);
    const auto run = std::find_if(runs_.begin(), runs_.end(),
                                  [id](const TransferRun* each) { return each->id() == id; });
    SLUICE_CHECK(run != runs_.end(), "a command of no run");
    held.work.Admit(*run, BucketWork::IndexOf(command.cookie), command.ticket,
                    staging_.data() + static_cast<int64_t>(slot) * slot_bytes_);
    if (in_groups_) groups_.Admitted(*run, held.work.index());
  }
  BeginStage(&held, command.stage);
  if (command.stage == Stage::kMoving) {
    if (absl::Status status = AddMove(slot); !status.ok()) return status;
  }
  return Continue(slot, command.stage);
}

absl::Status Runner::Continue(size_t slot, Stage stage) {
  if (stage == Stage::kMoving) return ContinueMove(slot);
  return ContinueAlone(slot, stage, 0);
}

// Continues a move, then those later ones of its channel that waited for it.
absl::Status Runner::ContinueMove(size_t slot) {
  while (true) {
    const int after = order_.After(slot);
    absl::Status status = ContinueAlone(slot, Stage::kMoving, order_.RoundsAllowed(slot));
    if (!status.ok() || after == MoveOrder::kNone || held_[slot].work.waits()) return status;
    if (!held_[static_cast<size_t>(after)].work.waits()) return status;
    slot = static_cast<size_t>(after);
  }
}

absl::Status Runner::AddMove(size_t slot) {
  const BucketWork& work = held_[slot].work;
  const size_t channel = static_cast<size_t>(work.bucket().channel);
  return order_.Add(slot, work.run()->transfer().engine_channels[channel], work.id());
}

// Does what is next of a stage; tells the engine if nothing is.
absl::Status Runner::ContinueAlone(size_t slot, Stage stage, int rounds_max) {
  BucketWork& work = held_[slot].work;
  const uint64_t cookie = CookieOf(slot, work.ticket());
  absl::Status status = work.Next(stage, rounds_max, cookie, &copies_, &messages_);
  if (status.ok() && stage == Stage::kMoving) status = order_.Begin(slot, work.rounds());
  if (!status.ok()) {
    status = Explain(status, cookie);
    // Otherwise it ends with the last copy that is under way.
    if (*work.pending() == 0) engine_->Fail(work.ticket(), status);
    return status;
  }
  if (*work.pending() > 0 || work.waits()) return absl::OkStatus();
  if (stage == Stage::kMoving) order_.End(slot);
  TransferRun* const run = work.run();
  const size_t index = work.index();
  const bool ends = work.EndsWith(stage);
  const Ticket ticket = work.ticket();
  if (!ends || !in_stream_order_) engine_->Finish(ticket);
  EndStage(slot);
  if (!ends) return absl::OkStatus();
  // An engine made anew gives the same tickets again.
  work.Clear();
  if (in_groups_) groups_.Ended(run, index);
  if (!in_stream_order_) {
    run->BucketDone(index);
    return absl::OkStatus();
  }
  // Its slots are in use until the device has come so far. A run in a stream need not wait for it.
  endings_.Add({ticket, run->in_stream() ? nullptr : run, index});
  if (run->in_stream()) run->BucketDone(index);
  return absl::OkStatus();
}

absl::Status Runner::FlushMessages() {
  if (messages_.empty()) return absl::OkStatus();
  if (in_groups_) return FlushHop();
  absl::Status status = transport_->Start(messages_);
  messages_.clear();
  return status;
}

absl::Status Runner::Explain(const absl::Status& status, uint64_t cookie) const {
  const BucketId id = held_[SlotOf(cookie)].work.id();
  return absl::Status(status.code(),
                      absl::StrCat("bucket ", id.ToString(), ": ", status.message()));
}

BucketId Runner::Freeze(TransferRun* run) {
  if (run->transfer().plan().buckets.empty()) return BucketId();
  run->Freeze();
  return engine_->Freeze(run->lane(), static_cast<uint64_t>(run->id()));
}

void Runner::Cut(TransferRun* run, const BucketId& last) {
  run->CutAt(last);
  if (in_groups_) groups_.Cut(*run);
  if (run->transfer().plan().buckets.empty()) return;
  engine_->Thaw(run->lane(), static_cast<uint64_t>(run->id()), last);
  Lane& lane = LaneOf(*run);
  if (!run->fed() || lane.empty()) return;
  const bool first = lane.front() == run;
  lane.erase(std::remove(lane.begin(), lane.end(), run), lane.end());
  if (first) AnnounceFirst(run->lane());
}

void Runner::Poison(const absl::Status& status) {
  if (engine_) engine_->Poison(status);
}

bool Runner::Settle() {
  const bool parted = transport_->Part();
  // Errors of what is taken back change nothing: the runs have failed already.
  if (transport_->outstanding() > 0) static_cast<void>(PollTransport());
  // What is in the stream still uses memory, though it counts as done.
  if (in_stream_order_ && !finishes_ && transport_->outstanding() == 0) {
    finishes_ = true;
    copies_.Finish().IgnoreError();
  }
  if (copies_.outstanding() > 0) static_cast<void>(PollDevice());
  return parted && !has_operations();
}

bool Runner::has_operations() const {
  return transport_->outstanding() > 0 || copies_.outstanding() > 0;
}

void Runner::KeepTime() {
  const int64_t now_ns = MonotonicNs();
  const int64_t passed_ns = now_ns - std::exchange(last_time_ns_, now_ns);
  running_ns_ += passed_ns;
  if (engine_->blocked() == Blocked::kBudget) budget_wait_ns_ += passed_ns;
}

}  // namespace sluice
