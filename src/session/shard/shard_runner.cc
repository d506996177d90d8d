// The loop between an engine, storage, a transport and a device.
#include "session/shard_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/clock.h"
#include "session/operation_cookie.h"
#include "session/stream_trace.h"
#include "tensor/check.h"

namespace sluice {
namespace {

constexpr size_t kEventBatch = 64;
// Steps of one Poll, so that it returns to the caller now and then.
constexpr int kStepsPerPoll = 32;
// Messages that are started at once, unless one bucket has more.
constexpr size_t kMessagesAtOnce = 1024;

TraceKind KindOf(Stage stage) {
  return stage == Stage::kFilling  ? TraceKind::kStorageRead
         : stage == Stage::kMoving ? TraceKind::kExchange
                                   : TraceKind::kDeviceCopy;
}

EngineOptions EngineOptionsOf(const ShardRunnerOptions& options) {
  EngineOptions engine;
  engine.channels = options.channels;
  // The budget alone bounds what is read ahead.
  engine.max_in_flight = options.slots;
  engine.slots = options.slots;
  engine.look_ahead = options.window;
  return engine;
}

}  // namespace

absl::StatusOr<std::shared_ptr<DeviceMemory>> ShardRunner::AllocateStaging(
    Device* device, const ShardRunnerOptions& options) {
  const size_t bytes = static_cast<size_t>(options.slots + options.spares + options.kept) *
                       static_cast<size_t>(options.block_bytes);
  absl::StatusOr<DeviceMemory> staging = device->AllocateStaging(bytes);
  if (!staging.ok()) return staging.status();
  return std::make_shared<DeviceMemory>(*std::move(staging));
}

absl::StatusOr<std::unique_ptr<ShardRunner>> ShardRunner::Make(
    ShardWork* work, Device* device, Source* source, std::unique_ptr<Transport> transport,
    std::shared_ptr<DeviceMemory> staging, const ShardRunnerOptions& options) {
  if (transport != nullptr) {
    absl::Status status = transport->Reserve(options.slots * std::max(1, options.operations_max));
    if (!status.ok()) return status;
  }
  return std::unique_ptr<ShardRunner>(
      new ShardRunner(work, device, source, std::move(transport), std::move(staging), options));
}

ShardRunner::ShardRunner(ShardWork* work, Device* device, Source* source,
                         std::unique_ptr<Transport> transport,
                         std::shared_ptr<DeviceMemory> staging, const ShardRunnerOptions& options)
    : work_(work),
      transport_(std::move(transport)),
      options_(options),
      staging_(std::move(staging)),
      engine_(EngineOptionsOf(options)),
      copies_(device),
      reads_(source, options.object_names, options.slots, options.spares, options.kept,
             staging_->data(), options.block_bytes, options.hedge, options.retry),
      pieces_(static_cast<size_t>(engine_.options().look_ahead)),
      head_start_(options.head_start_ns, options.first_sends_ns),
      held_(static_cast<size_t>(options.slots)),
      transport_events_(kEventBatch),
      read_events_(kEventBatch),
      copied_(Device::kMaxOutstanding) {
  drains_.reserve(held_.size());
  parked_.reserve(held_.size());
  order_.Reserve(static_cast<size_t>(options.channels), held_.size());
  messages_.reserve(std::max(kMessagesAtOnce, static_cast<size_t>(options.operations_max)));
}

ShardRunner::~ShardRunner() {
  // A read that storage never answers cannot be taken back.
  if (reads_.outstanding() > 0) staging_->Abandon();
  if (has_messages()) transport_->KeepUntilOver(staging_);
}

absl::StatusOr<bool> ShardRunner::Poll() {
  if (!engine_.status().ok()) return engine_.status();
  bool moved = false;
  for (int step = 0; step < kStepsPerPoll; ++step) {
    absl::StatusOr<bool> stepped = Step();
    if (!stepped.ok()) {
      Poison(stepped.status());
      return stepped.status();
    }
    if (!*stepped) break;
    moved = true;
    if (delivered_) break;
  }
  return moved;
}

absl::StatusOr<bool> ShardRunner::Step() {
  const bool held_back = head_start_.holds();
  delivered_ = false;
  absl::StatusOr<bool> read = PollReads();
  if (!read.ok()) return read;
  absl::StatusOr<bool> crossed = PollTransport();
  if (!crossed.ok()) return crossed;
  absl::StatusOr<bool> copied = PollDevice();
  if (!copied.ok()) return copied;
  absl::StatusOr<bool> drained = PollDrains();
  if (!drained.ok()) return drained;
  // The first item is there: not even the others' beginning holds it up.
  if (held_back && !head_start_.holds()) return true;
  absl::StatusOr<bool> sent = PollParked();
  if (!sent.ok()) return sent;
  Feed();
  bool commanded = false;
  Command command;
  while (engine_.Next(&command)) {
    commanded = true;
    if (absl::Status status = CarryOut(command); !status.ok()) return status;
  }
  if (absl::Status status = Flush(); !status.ok()) return status;
  held_peak_ = std::max(held_peak_, engine_.counters().held_slots + reads_.spares_used());
  const bool moved = *read || *crossed || *copied || *drained || *sent || commanded;
  if (options_.trace != nullptr && moved) {
    const int held = engine_.counters().held_slots + reads_.spares_used();
    options_.trace->Sample(MonotonicNs(), held, held * options_.block_bytes);
  }
  return moved;
}

void ShardRunner::Feed() {
  const int64_t now_ns = MonotonicNs();
  while (engine_.CanSubmit()) {
    ShardPiece& piece = PieceOf(sequence_);
    if (!fetched_ && !work_->NextPiece(&piece)) return;
    fetched_ = !head_start_.MayBegin(piece.index, now_ns);
    if (fetched_) return;
    Submission submission;
    submission.id = piece.id;
    submission.channel = piece.channel;
    submission.stages = piece.stages;
    submission.staging_bytes = options_.block_bytes;
    submission.operations = (piece.stages & kStageMove) != 0 ? 1 : 0;
    submission.cookie = sequence_++;
    engine_.Submit(submission);
  }
}

absl::Status ShardRunner::CarryOut(const Command& command) {
  const size_t slot = static_cast<size_t>(command.slots[0]);
  Held& held = held_[slot];
  if (held.stage == Stage::kWaiting) {
    held.piece = PieceOf(command.cookie);
    held.ticket = command.ticket;
    held.data = BlockOf(slot);
  }
  const bool begins = held.stage == Stage::kWaiting;
  held.stage = command.stage;
  held.begin_ns = MonotonicNs();
  if (begins) held.piece.begin_ns = held.begin_ns;
  switch (command.stage) {
    case Stage::kFilling: {
      if (held.piece.read.bytes == 0) return EndFill(slot);
      ReadOrder order = held.piece.read;
      order.slot = static_cast<int>(slot);
      reads_.Order(order, held.begin_ns);
      return absl::OkStatus();
    }
    case Stage::kMoving: {
      const absl::Status status = order_.Add(slot, held.piece.channel, held.piece.id);
      if (!status.ok()) return FailStage(slot, status);
      // Receives wait only for what is sent before them in their channel.
      const bool may_begin = begins || head_start_.MaySend(held.piece.index, held.begin_ns);
      if (may_begin && order_.MayBegin(slot)) return BeginMove(slot);
      parked_.push_back(slot);
      return absl::OkStatus();
    }
    default:
      work_->Arrived(held.piece);
      if (!work_->MayDrain(held.piece)) {
        held.waits = true;
        drains_.push_back(slot);
        return absl::OkStatus();
      }
      return BeginDrain(slot);
  }
}

absl::Status ShardRunner::EndFill(size_t slot) {
  Held& held = held_[slot];
  copies_.Begin(CookieOf(slot, held.ticket), &held.pending);
  if (absl::Status status = work_->Fill(held.piece, held.data, &copies_); !status.ok()) {
    return FailStage(slot, Explain(status, held.piece));
  }
  if (absl::Status status = copies_.Flush(); !status.ok()) return FailStage(slot, status);
  return held.pending > 0 ? absl::OkStatus() : EndStage(slot);
}

absl::Status ShardRunner::BeginMove(size_t slot) {
  const size_t room = messages_.capacity() - messages_.size();
  if (room < static_cast<size_t>(options_.operations_max)) {
    if (absl::Status status = Flush(); !status.ok()) return FailStage(slot, status);
  }
  if (absl::Status status = order_.Begin(slot, 1); !status.ok()) return FailStage(slot, status);
  Held& held = held_[slot];
  const size_t before = messages_.size();
  work_->AddMessages(held.piece, held.data, CookieOf(slot, held.ticket), &messages_);
  held.pending = static_cast<int>(messages_.size() - before);
  return held.pending > 0 ? absl::OkStatus() : EndStage(slot);
}

absl::Status ShardRunner::BeginDrain(size_t slot) {
  // What storage and the network can already do should not wait for a copy.
  if (absl::Status status = Flush(); !status.ok()) return status;
  Held& held = held_[slot];
  held.waits = false;
  held.begin_ns = MonotonicNs();
  const int block = reads_.BlockNumberOf(static_cast<int>(slot));
  const int given = work_->KeepBlock(held.piece, held.data, BlockOf(slot), block);
  if (given != ShardWork::kNoBlock) {
    reads_.Exchange(static_cast<int>(slot), given);
    return EndStage(slot);
  }
  copies_.Begin(CookieOf(slot, held.ticket), &held.pending);
  if (absl::Status status = work_->Drain(held.piece, held.data, &copies_); !status.ok()) {
    return FailStage(slot, Explain(status, held.piece));
  }
  if (absl::Status status = copies_.Flush(); !status.ok()) return FailStage(slot, status);
  return held.pending > 0 ? absl::OkStatus() : EndStage(slot);
}

// A stage cannot go on. Where something of it is under way, the bucket ends with that.
absl::Status ShardRunner::FailStage(size_t slot, const absl::Status& status) {
  if (held_[slot].pending == 0) engine_.Fail(held_[slot].ticket, status);
  return status;
}

absl::Status ShardRunner::EndStage(size_t slot) {
  Held& held = held_[slot];
  const int64_t now_ns = MonotonicNs();
  (held.stage == Stage::kFilling  ? times_.read_ns
   : held.stage == Stage::kMoving ? times_.exchange_ns
                                  : times_.copy_ns) += now_ns - held.begin_ns;
  if (options_.trace != nullptr) {
    options_.trace->Stage(KindOf(held.stage), slot, held.piece, held.begin_ns, now_ns);
  }
  if (held.stage == Stage::kMoving) order_.End(slot);
  absl::Status status;
  if (NextStage(held.stage, held.piece.stages) == Stage::kDone) {
    held.stage = Stage::kWaiting;
    status = work_->Done(held.piece, held.data);
    head_start_.Ended(held.piece.index);
    delivered_ = true;
    if (!status.ok()) status = Explain(status, held.piece);
  }
  engine_.Finish(held.ticket);
  return status;
}

absl::StatusOr<bool> ShardRunner::PollReads() {
  const absl::StatusOr<int> count = reads_.Poll(absl::MakeSpan(read_events_), MonotonicNs());
  if (!count.ok()) return count.status();
  absl::Status failure;
  for (int i = 0; i < *count; ++i) {
    const ReadDone& done = read_events_[static_cast<size_t>(i)];
    Held& held = held_[static_cast<size_t>(done.slot)];
    failure.Update(engine_.status());
    failure.Update(done.status);
    if (!failure.ok()) {
      engine_.Fail(held.ticket, failure);
      continue;
    }
    held.data = const_cast<std::byte*>(done.data);  // NOLINT: the runner's own memory
    failure.Update(EndFill(static_cast<size_t>(done.slot)));
  }
  if (!failure.ok()) return failure;
  return *count > 0;
}

absl::StatusOr<bool> ShardRunner::PollTransport() {
  if (!has_messages()) return false;
  const absl::StatusOr<int> count = transport_->Poll(absl::MakeSpan(transport_events_));
  if (!count.ok()) return count.status();
  absl::Status failure;
  for (int i = 0; i < *count; ++i) {
    const TransportEvent& event = transport_events_[static_cast<size_t>(i)];
    const size_t slot = FindHeld(event.cookie);
    Held& held = held_[slot];
    if (!event.status.ok()) failure.Update(Explain(event.status, held.piece));
    if (--held.pending > 0) continue;
    if (!failure.ok() || !engine_.status().ok()) {
      engine_.Fail(held.ticket, failure.ok() ? engine_.status() : failure);
      continue;
    }
    failure.Update(EndStage(slot));
  }
  if (!failure.ok()) return failure;
  return *count > 0;
}

absl::StatusOr<bool> ShardRunner::PollDevice() {
  if (copies_.outstanding() == 0) return false;
  const absl::StatusOr<int> count = copies_.Poll(absl::MakeSpan(copied_));
  if (!count.ok()) return count.status();
  absl::Status failure;
  for (int i = 0; i < *count; ++i) {
    const size_t slot = FindHeld(copied_[static_cast<size_t>(i)]);
    Held& held = held_[slot];
    if (--held.pending > 0) continue;
    if (!failure.ok() || !engine_.status().ok()) {
      engine_.Fail(held.ticket, failure.ok() ? engine_.status() : failure);
      continue;
    }
    failure.Update(EndStage(slot));
  }
  if (!failure.ok()) return failure;
  return *count > 0;
}

absl::StatusOr<bool> ShardRunner::PollDrains() {
  size_t kept = 0;
  bool any = false;
  for (size_t i = 0; i < drains_.size(); ++i) {
    const size_t slot = drains_[i];
    if (!work_->MayDrain(held_[slot].piece)) {
      drains_[kept++] = slot;
      continue;
    }
    any = true;
    if (absl::Status status = BeginDrain(slot); !status.ok()) {
      drains_.erase(drains_.begin() + static_cast<ptrdiff_t>(kept),
                    drains_.begin() + static_cast<ptrdiff_t>(i) + 1);
      return status;
    }
  }
  drains_.resize(kept);
  return any;
}

absl::StatusOr<bool> ShardRunner::PollParked() {
  if (parked_.empty()) return false;
  // The first one waits for nothing else. Whatever the others wait for is parked before them.
  if (!head_start_.MaySend(held_[parked_.front()].piece.index, MonotonicNs())) return false;
  for (size_t i = 0; i < parked_.size(); ++i) {
    if (absl::Status status = BeginMove(parked_[i]); !status.ok()) {
      parked_.erase(parked_.begin(), parked_.begin() + static_cast<ptrdiff_t>(i) + 1);
      return status;
    }
  }
  parked_.clear();
  return true;
}

absl::Status ShardRunner::Flush() {
  if (absl::Status status = reads_.Flush(); !status.ok()) return status;
  if (messages_.empty()) return absl::OkStatus();
  absl::Status status = transport_->Start(messages_);
  messages_.clear();
  return status;
}

size_t ShardRunner::FindHeld(uint64_t cookie) const {
  const size_t slot = SlotOf(cookie);
  SLUICE_CHECK(held_[slot].ticket == TicketOf(cookie), "an operation of no bucket");
  return slot;
}

void ShardRunner::Poison(const absl::Status& status) {
  engine_.Poison(status);
  reads_.CancelAll();
  // Nothing goes on with these.
  for (std::vector<size_t>* const waiting : {&drains_, &parked_}) {
    for (const size_t slot : *waiting) engine_.Fail(held_[slot].ticket, status);
    waiting->clear();
  }
}

bool ShardRunner::Settle(bool parts) {
  // Errors of what is taken back change nothing: the stream has failed already.
  bool parted = true;
  if (transport_ != nullptr) {
    if (parts) parted = transport_->Part();
    if (has_messages()) static_cast<void>(PollTransport());
  }
  if (copies_.outstanding() > 0) static_cast<void>(PollDevice());
  if (reads_.outstanding() > 0) static_cast<void>(PollReads());
  return parted && !has_messages() && copies_.outstanding() == 0 && reads_.outstanding() == 0;
}

absl::Status ShardRunner::Explain(const absl::Status& status, const ShardPiece& piece) const {
  return absl::Status(status.code(),
                      absl::StrCat("bucket ", piece.id.ToString(), ": ", status.message()));
}

std::string ShardRunner::DescribeOldest() {
  Engine::Oldest oldest;
  if (!engine_.OldestUnfinished(&oldest)) return "";
  const std::string members = work_->MembersOf(PieceOf(oldest.cookie));
  return absl::StrCat("bucket ", oldest.id.ToString(), members.empty() ? "" : ", ", members,
                      ", is ", StageName(oldest.stage));
}

}  // namespace sluice
