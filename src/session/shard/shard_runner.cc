// Makes, feeds and ends a runner of shards, and takes what its reads bring.
#include "session/shard/shard_runner.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "session/base/carrier_steps.h"
#include "session/shard/stage_trace.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

constexpr size_t kReadEventBatch = 64;
// Messages that are started at once, unless one bucket has more.
constexpr size_t kMessagesAtOnce = 1024;

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
  SLUICE_ASSIGN_OR_RETURN(DeviceMemory staging, device->AllocateStaging(bytes));
  return std::make_shared<DeviceMemory>(std::move(staging));
}

absl::StatusOr<std::unique_ptr<ShardRunner>> ShardRunner::Make(
    ShardWork* work, Device* device, Source* source, std::unique_ptr<Transport> transport,
    std::shared_ptr<DeviceMemory> staging, const ShardRunnerOptions& options) {
  std::unique_ptr<ShardRunner> runner(
      new ShardRunner(work, device, source, std::move(transport), std::move(staging), options));
  const EngineOptions engine = EngineOptionsOf(options);
  const size_t messages = std::max(kMessagesAtOnce, static_cast<size_t>(options.operations_max));
  SLUICE_RETURN_IF_ERROR(runner->carrier_.MakeRoom(&engine, options.operations_max, messages));
  return runner;
}

ShardRunner::ShardRunner(ShardWork* work, Device* device, Source* source,
                         std::unique_ptr<Transport> transport,
                         std::shared_ptr<DeviceMemory> staging, const ShardRunnerOptions& options)
    : work_(work),
      options_(options),
      staging_(std::move(staging)),
      carrier_(device, std::move(transport)),
      reads_(source, options.object_names, options.slots, options.spares, options.kept,
             staging_->data(), options.block_bytes, options.hedge, options.retry),
      grouped_(options.slots),
      pieces_(static_cast<size_t>(options.window)),
      read_ahead_(options.few_slots, options.slots),
      head_start_(options.head_start_ns, options.first_sends_ns),
      held_(static_cast<size_t>(options.slots)),
      read_events_(kReadEventBatch) {
  drains_.reserve(held_.size());
  parked_.reserve(held_.size());
}

ShardRunner::~ShardRunner() {
  // A read that storage never answers cannot be taken back.
  if (has_reads()) staging_->Abandon();
  if (has_writes()) options_.sink->KeepUntilOver(staging_);
  if (has_messages()) carrier_.transport()->KeepUntilOver(staging_);
}

absl::StatusOr<bool> ShardRunner::Poll() {
  if (!engine().status().ok()) return engine().status();
  absl::StatusOr<bool> moved = carrier_.Poll(this);
  if (!moved.ok()) Poison(moved.status());
  return moved;
}

absl::StatusOr<bool> ShardRunner::PollOthers() {
  held_back_ = head_start_.holds();
  SLUICE_ASSIGN_OR_RETURN(const bool wrote, PollWrites());
  SLUICE_ASSIGN_OR_RETURN(const bool read, PollReads());
  return wrote || read;
}

absl::StatusOr<Carrier::Fed> ShardRunner::Feed() {
  SLUICE_ASSIGN_OR_RETURN(const bool drained, PollDrains());
  // The first item is there: not even the others' beginning holds it up.
  if (held_back_ && !head_start_.holds()) return Carrier::Fed::kLeave;
  SLUICE_ASSIGN_OR_RETURN(const bool sent, PollParked());
  Submit();
  return drained || sent ? Carrier::Fed::kSome : Carrier::Fed::kNothing;
}

int64_t ShardRunner::Unfinished() const {
  const EngineCounters& counters = engine().counters();
  return counters.submitted - counters.finished - counters.failed - counters.cancelled;
}

bool ShardRunner::MaySubmit() const {
  if (options_.sink != nullptr) return Unfinished() < write_ahead_;
  if (aside_ || read_ahead_.limit() == ReadAhead::kAll) return true;
  return Unfinished() < read_ahead_.limit();
}

// Storage may take pieces sooner than they are copied, into new memory above all. The memory of a
// few slots is then new only once.
void ShardRunner::GrowWriteAhead() {
  if (Unfinished() >= write_ahead_) ++write_ahead_;
}

void ShardRunner::Submit() {
  const int64_t now_ns = MonotonicNs();
  Engine* const engine = carrier_.engine();
  GrowWriteAhead();
  while (engine->CanSubmit() && MaySubmit()) {
    ShardPiece& piece = PieceOf(sequence_);
    if (!fetched_ && !work_->NextPiece(&piece)) {
      if (work_->over()) grouped_.AnnounceEnd();
      return;
    }
    fetched_ = !head_start_.MayBegin(piece.index, now_ns);
    if (fetched_) return;
    Submission submission;
    submission.id = piece.id;
    submission.channel = piece.channel;
    submission.stages = piece.stages;
    submission.staging_bytes = options_.block_bytes;
    submission.operations = (piece.stages & kStageMove) != 0 ? 1 : 0;
    if (piece.group >= 0) {
      grouped_.Announce(piece.group, (piece.stages & kStageFill) != 0 && piece.read.bytes > 0);
    }
    submission.cookie = sequence_++;
    engine->Submit(submission);
  }
}

absl::StatusOr<bool> ShardRunner::PollReads() {
  const absl::StatusOr<int> count = reads_.Poll(absl::MakeSpan(read_events_), MonotonicNs());
  if (!count.ok()) return count.status();
  absl::Status failure;
  for (int i = 0; i < *count; ++i) {
    ReadDone& done = read_events_[static_cast<size_t>(i)];
    const size_t slot = static_cast<size_t>(done.slot);
    failure.Update(engine().status());
    failure.Update(done.status);
    if (!failure.ok()) {
      carrier_.Drop(slot, failure);
      continue;
    }
    // The runner's own memory, or it is lent and only read.
    held_[slot].data = const_cast<std::byte*>(done.data);  // NOLINT
    held_[slot].lender = std::move(done.lender);
    if (!done.aside) read_ahead_.Answered(done.at_once);
    failure.Update(BeginCopies(slot, Stage::kFilling));
  }
  if (!failure.ok()) return failure;
  return *count > 0;
}

absl::StatusOr<bool> ShardRunner::PollWrites() {
  if (!has_writes()) return false;
  absl::Status failure;
  WriteEvent written;
  bool any = false;
  while (options_.sink->Next(&written)) {
    any = true;
    const auto slot = static_cast<size_t>(written.cookie);
    failure.Update(engine().status());
    if (!failure.ok()) {
      carrier_.Drop(slot, failure);
    } else if (!written.status.ok()) {
      failure = carrier_.Fail(slot, written.status);
    } else {
      failure = carrier_.EndStage(slot, this);
    }
  }
  if (!failure.ok()) return failure;
  return any;
}

absl::Status ShardRunner::Flush() {
  NoteHeld();
  OrderGrouped();
  if (absl::Status status = reads_.Flush(); !status.ok()) return status;
  if (has_writes()) SLUICE_RETURN_IF_ERROR(options_.sink->Submit());
  return carrier_.Send();
}

void ShardRunner::OrderGrouped() {
  if (grouped_.empty()) return;
  Engine::Oldest oldest;
  if (!engine().OldestUnfinished(&oldest)) return;
  const int64_t now_ns = MonotonicNs();
  for (const ReadOrder& order : grouped_.Take(PieceOf(oldest.cookie).group)) {
    held_[static_cast<size_t>(order.slot)].begin_ns = now_ns;
    Busy(now_ns);
    reads_.Order(order, now_ns);
  }
}

void ShardRunner::Busy(int64_t now_ns) {
  if (busy_stages_++ == 0) busy_since_ns_ = now_ns;
}

void ShardRunner::Idle(int64_t now_ns) {
  if (--busy_stages_ == 0) times_.busy_ns += now_ns - busy_since_ns_;
}

void ShardRunner::NoteHeld() {
  const int held = engine().counters().held_buckets + reads_.spares_used();
  held_peak_ = std::max(held_peak_, held);
  if (options_.trace != nullptr) {
    options_.trace->Sample(MonotonicNs(), held, held * options_.block_bytes);
  }
}

void ShardRunner::Poison(const absl::Status& status) {
  carrier_.Poison(status);
  reads_.CancelAll();
  if (has_writes()) options_.sink->Cancel();
  grouped_.Clear();
  // Nothing goes on with these.
  for (std::vector<size_t>* const waiting : {&drains_, &parked_}) {
    for (const size_t slot : *waiting) carrier_.Drop(slot, status);
    waiting->clear();
  }
}

bool ShardRunner::Settle(bool parts) {
  const bool settled = carrier_.Settle(parts, this);
  // Errors of what is taken back change nothing: the stream has failed already.
  if (has_reads()) static_cast<void>(PollReads());
  if (has_writes()) static_cast<void>(PollWrites());
  return settled && !has_reads() && !has_writes();
}

ErrorText ShardRunner::DescribeOldest() {
  Engine::Oldest oldest;
  if (!engine().OldestUnfinished(&oldest)) return {};
  const ErrorText members = work_->MembersOf(PieceOf(oldest.cookie));
  return ErrorText("bucket ", oldest.id.InWords(), members.empty() ? "" : ", ", members, ", is ",
                   StageName(oldest.stage));
}

}  // namespace sluice
