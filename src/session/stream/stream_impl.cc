// The two sides of a stream.
#include "session/stream/stream_impl.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "session/base/backoff.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"

namespace sluice {
namespace {

// How long a stream that is destroyed waits for reads, and for messages while none of them ends.
// Operations that are not over then keep their memory for ever: a send whose receiver has taken
// back its part cannot be taken back.
constexpr absl::Duration kReadsSettleTime = absl::Seconds(5);
constexpr absl::Duration kMessagesSettleTime = absl::Milliseconds(50);

// A block becomes a device buffer where both are the same kind of memory and an item is what was
// read. So the item is one piece, alone in its batch, and not transformed.
bool KeepsBlocks(const StreamParts& parts) {
  return parts.device->staging_is_device_memory() && parts.options.buffers.batch_items == 1 &&
         !parts.options.buffers.transform &&
         parts.limits.piece_bytes >= parts.items->item_bytes_max();
}

// A consumer that takes items where they lie in host memory may as well take them where the source
// has them.
bool LendsItems(const StreamParts& parts) {
  return parts.source->lends() && parts.device->staging_is_device_memory() &&
         !parts.options.buffers.transform;
}

int64_t BufferBytes(const StreamParts& parts) {
  return KeepsBlocks(parts) ? parts.limits.block_bytes : parts.limits.buffer_bytes;
}

StreamWorkOptions WorkOptionsOf(const StreamParts& parts) {
  StreamWorkOptions options;
  options.piece_bytes = parts.limits.piece_bytes;
  options.window = parts.limits.window;
  options.in_order = parts.options.order.in_order;
  options.transform = parts.options.buffers.transform;
  options.memory = parts.device->traits();
  options.await_in_stream = parts.options.buffers.await_in_stream;
  options.keep_blocks = KeepsBlocks(parts);
  options.lends = LendsItems(parts);
  options.batch_items = parts.options.buffers.batch_items;
  options.groups_reads =
      parts.options.order.shuffle_block_items.value_or(1) > 1 && !parts.items->made();
  options.trace = parts.stage_trace.get();
  return options;
}

ShardRunnerOptions RunnerOptionsOf(const StreamParts& parts) {
  ShardRunnerOptions options;
  options.slots = parts.limits.slots;
  // Ranks that wait for each other read ahead for each other, too. Reads that go together fill more
  // slots than few.
  const bool may_be_few =
      parts.sharers_max == 1 && parts.options.order.shuffle_block_items.value_or(1) == 1;
  if (may_be_few) options.few_slots = ReadAhead::FewOf(parts.limits.block_bytes);
  options.window = parts.limits.window;
  options.spares = parts.limits.spares;
  options.kept = KeepsBlocks(parts) ? parts.options.buffers.count : 0;
  options.block_bytes = parts.limits.block_bytes;
  options.channels = kStreamChannels;
  options.operations_max = parts.sharers_max - 1;
  options.object_names = parts.items->object_names();
  options.hedge = parts.options.reads.hedge;
  options.retry = parts.options.reads.retry;
  // Items that a generator makes take no bandwidth from the first item.
  if (!parts.items->made()) {
    options.head_start_ns = HeadStart::kLongestNs;
    options.first_sends_ns = HeadStart::kLongestForSendsNs;
  }
  options.trace = parts.stage_trace.get();
  return options;
}

// Device buffers of their own, or the blocks behind staging's.
absl::StatusOr<DeliveryMemory> BuffersOf(const StreamParts& parts,
                                         const ShardRunnerOptions& options,
                                         const std::shared_ptr<DeviceMemory>& staging) {
  DeliveryMemory memory;
  memory.stride = BufferBytes(parts);
  if (options.kept > 0) {
    memory.first_block = options.slots + options.spares;
    memory.data = staging->data() + memory.first_block * memory.stride;
    memory.owner = staging;
    return memory;
  }
  SLUICE_ASSIGN_OR_RETURN(DeviceMemory own, parts.device->AllocateBuffer(
                                                static_cast<size_t>(parts.options.buffers.count) *
                                                static_cast<size_t>(memory.stride)));
  memory.data = own.data();
  memory.owner = std::make_shared<DeviceMemory>(std::move(own));
  memory.kind = parts.device->traits().buffers;
  memory.ordinal = parts.device_ordinal;
  for (int i = 0; memory.kind != DeviceKind::kCpu && i < parts.options.buffers.count; ++i) {
    for (auto* const fences : {&memory.ready, &memory.released}) {
      SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Fence> fence, parts.device->MakeFence());
      fences->push_back(std::move(fence));
    }
  }
  return memory;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StreamImpl>> StreamImpl::Make(StreamParts parts,
                                                             StreamDriver* driver) {
  const ShardRunnerOptions options = RunnerOptionsOf(parts);
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemory> staging,
                          ShardRunner::AllocateStaging(parts.device.get(), options));
  SLUICE_ASSIGN_OR_RETURN(DeliveryMemory buffers, BuffersOf(parts, options, staging));
  auto delivery = std::make_shared<Delivery>(std::move(buffers), parts.options.buffers.count,
                                             parts.options.buffers.batch_items);
  std::unique_ptr<StreamImpl> stream(new StreamImpl(std::move(parts), driver, std::move(delivery)));
  StreamParts& kept = stream->parts_;
  SLUICE_ASSIGN_OR_RETURN(
      std::unique_ptr<ShardRunner> runner,
      ShardRunner::Make(&stream->work_, kept.device.get(), kept.source.get(),
                        std::move(kept.transport), std::move(staging), options));
  stream->runner_ = std::move(runner);
  return stream;
}

StreamImpl::StreamImpl(StreamParts parts, StreamDriver* driver, std::shared_ptr<Delivery> delivery)
    : parts_(std::move(parts)),
      driver_(driver),
      delivery_(std::move(delivery)),
      cells_(delivery_.get(), parts_.options.buffers.batch_items, parts_.limits.cell_bytes,
             parts_.options.order.in_order),
      work_(parts_.plan.get(), parts_.rank, parts_.items.get(), &cells_, WorkOptionsOf(parts_)),
      releases_(parts_.order, parts_.plan.get()),
      gate_(parts_.options.source) {
  delivery_->set_listener(this);
  buffer_taken_ns_.resize(static_cast<size_t>(delivery_->buffers()));
}

StreamImpl::~StreamImpl() {
  delivery_->set_listener(nullptr);  // leases may stay
  if (fork_guard_.InChild()) {
    // Reads and messages are the parent's.
    static_cast<void>(runner_.release());
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory a child may end
    static_cast<void>(new StreamParts(std::move(parts_)));
    return;
  }
  if (runner_ == nullptr) return;
  // Whether it has ended is the session's to know: until it is removed.
  if (opened_) {
    driver_->Remove(this, MakeError(absl::StatusCode::kCancelled, RankInWords(parts_.rank),
                                    " closed the stream before its end"));
  }
  Fail(absl::CancelledError("the stream was closed"));
  const Deadline reads(kReadsSettleTime);
  Deadline messages(kMessagesSettleTime);
  int outstanding = runner_->messages();
  Backoff backoff;
  // A stream that has come to its end leaves nobody waiting.
  while (!runner_->Settle(failed_) && !(runner_->has_reads() ? reads : messages).Passed()) {
    if (const int now = runner_->messages(); std::exchange(outstanding, now) != now) {
      messages = Deadline(kMessagesSettleTime);
    }
    backoff.Pause();
  }
  delivery_->ForgetUntaken();
}

bool StreamImpl::Advance(int64_t now_ns) {
  if (ended_) {
    // Messages that other ranks still send here end as soon as this one has parted from them.
    Settle();
    return false;
  }
  if (lent_.gone()) {
    FailEverywhere(lent_.status());
    return true;
  }
  absl::StatusOr<bool> moved = runner_->Poll();
  if (!moved.ok()) {
    FailEverywhere(moved.status());
    return true;
  }
  if (*moved) {
    moved_ns_ = now_ns;
    TakeStats();
  }
  if (runner_->done()) {
    ended_ = true;
    const int64_t expected = parts_.plan->CountToCome();
    delivery_->End(
        work_.items_done() == expected
            ? absl::OkStatus()
            : absl::DataLossError(absl::StrCat("the stream ended after ", work_.items_done(),
                                               " of ", expected, " items")));
    return true;
  }
  if (!*moved) CheckTimeout(now_ns);
  return *moved;
}

bool StreamImpl::Settle() {
  if (failed_ && !settled_) settled_ = runner_->Settle(true);
  return !failed_ || settled_;
}

void StreamImpl::CheckTimeout(int64_t now_ns) {
  const int64_t since_ns = delivery_->waiting_since_ns();
  if (since_ns == INT64_MAX) return;
  long_wait_.Look(since_ns, now_ns, [this] {
    return absl::StrCat("an item of the stream (", runner_->DescribeOldest().text(), ")");
  });
  if (now_ns - since_ns <= absl::ToInt64Nanoseconds(parts_.options.timeout)) return;
  // How long an item takes does not tell a stream that stands still from a slow one.
  const int64_t still_ms = (now_ns - moved_ns_) / 1'000'000;
  const absl::Status status = MakeError(
      absl::StatusCode::kDeadlineExceeded, RankInWords(parts_.rank), " has waited for an item for ",
      absl::FormatDuration(parts_.options.timeout), "; nothing has moved here for ",
      absl::FormatDuration(absl::Milliseconds(still_ms)), "; ", runner_->DescribeOldest());
  FailEverywhere(status);
}

void StreamImpl::FailEverywhere(const absl::Status& status) {
  if (is_exchanged()) driver_->RaiseAlarm(parts_.number, status);
  Fail(status);
}

void StreamImpl::Fail(const absl::Status& status) {
  if (ended_) return;
  ended_ = true;
  failed_ = true;
  runner_->Poison(status);
  TakeStats();
  delivery_->End(status);
}

absl::StatusOr<Lease> StreamImpl::Next() {
  if (absl::Status status = fork_guard_.Check(); !status.ok()) return status;
  const int64_t now_ns = MonotonicNs();
  const int64_t computed_ns = taken_ns_ != 0 ? now_ns - taken_ns_ : 0;
  consuming_ns_ += computed_ns;
  if (lent_.LookAtHeld(*delivery_)) driver_->Wake();
  if (lent_.gone()) {
    // The other ranks are to hear of it; the session says what else is wrong.
    if (!driver_->has_thread()) driver_->Pump().IgnoreError();
    return lent_.status();
  }
  absl::StatusOr<Lease> lease = TakeReady();
  taken_ns_ = MonotonicNs();
  waiting_ns_ += taken_ns_ - now_ns;
  if (!driver_->has_thread()) {
    share_.Add(computed_ns, taken_ns_ - now_ns);
    runner_->ReadAside(share_.computes());
  }
  if (lease.ok() && !lease->end()) {
    if (items_delivered_ == 0) first_item_ns_ = taken_ns_ - parts_.begin_ns;
    items_delivered_ += lease->items();
    if (parts_.generator != nullptr) {
      gate_.Taken();
      parts_.generator->Allow(gate_.batches(), gate_.updates());
    }
    lent_.Taken(lease->buffer_, delivery_->LeasedItems(lease->buffer_));
    buffer_taken_ns_[static_cast<size_t>(lease->buffer_)] = taken_ns_;
    if (parts_.consumer_trace != nullptr) {
      parts_.consumer_trace->Wait(delivery_->LeasedItems(lease->buffer_)[0], now_ns, taken_ns_);
    }
  } else if (parts_.consumer_trace != nullptr) {
    parts_.consumer_trace->End(taken_ns_);
  }
  return lease;
}

absl::StatusOr<Lease> StreamImpl::TakeReady() {
  if (absl::Status status = WaitUntilReady(); !status.ok()) return status;
  switch (delivery_->state()) {
    case Delivery::State::kReady:
      return Delivery::Take(delivery_);
    case Delivery::State::kEnd:
      if (!delivery_->status().ok()) return delivery_->status();
      return Lease();
    default:
      return absl::FailedPreconditionError(
          absl::StrCat("Next while all ", delivery_->buffers(), " device buffers are leased"));
  }
}

absl::Status StreamImpl::WaitUntilReady() {
  if (delivery_->state() != Delivery::State::kNotReady) return absl::OkStatus();
  delivery_->BeginWait(MonotonicNs());
  absl::Status status;
  while (status.ok() && delivery_->state() == Delivery::State::kNotReady) {
    if (driver_->has_thread()) {
      delivery_->Sleep();
    } else {
      status = driver_->Pump();
    }
  }
  delivery_->EndWait();
  return status;
}

void StreamImpl::Releasing(int buffer, absl::Span<const DeliveredItem> items) {
  if (lent_.Release(buffer, items)) driver_->Wake();
  // A consumer that goes on from the cursor gets again the items that may have been zeros.
  if (!lent_.gone()) {
    for (const DeliveredItem& item : items) releases_.Release(item.position);
  }
  if (parts_.consumer_trace == nullptr) return;
  parts_.consumer_trace->Consume(buffer, items, buffer_taken_ns_[static_cast<size_t>(buffer)],
                                 MonotonicNs());
}

void StreamImpl::EndUpdate() {
  if (parts_.generator == nullptr) return;
  gate_.UpdateEnded();
  parts_.generator->Allow(gate_.batches(), gate_.updates());
  // A trainer that computes now may not come back for long. The generator should know all that it
  // may make.
  if (!driver_->has_thread()) Advance(MonotonicNs());
}

void StreamImpl::TakeStats() {
  StreamStats stats;
  const SourceCounters& source = parts_.source->counters();
  stats.bytes = work_.bytes_done();
  stats.requests = source.requests;
  stats.bytes_read = source.bytes_read;
  stats.opens = source.opens;
  stats.connections = source.connections;
  stats.hedges = runner_->read_counters().hedges;
  stats.hedges_won = runner_->read_counters().hedges_won;
  stats.retries = runner_->read_counters().retries;
  stats.read_runs = runner_->read_counters().runs;
  if (parts_.stage_trace != nullptr) stats.trace_left_out = parts_.stage_trace->left_out();
  stats.slots_max = parts_.limits.slots + parts_.limits.spares;
  stats.slots_peak = runner_->held_peak();
  stats.slot_bytes = parts_.limits.block_bytes;
  stats.budget_bytes = parts_.options.reads.budget_bytes;
  stats.budget_bytes_peak = stats.slots_peak * stats.slot_bytes;
  stats.bytes_copied = work_.bytes_copied();
  stats.device_bytes = parts_.options.buffers.count * BufferBytes(parts_);
  stats.reading = absl::Nanoseconds(runner_->times().read_ns);
  stats.exchanging = absl::Nanoseconds(runner_->times().exchange_ns);
  stats.copying = absl::Nanoseconds(runner_->times().copy_ns);
  stats.busy = absl::Nanoseconds(runner_->times().busy_ns);
  const std::lock_guard<std::mutex> lock(stats_mutex_);
  session_stats_ = stats;
}

StreamStats StreamImpl::stats() const {
  StreamStats stats;
  {
    const std::lock_guard<std::mutex> lock(stats_mutex_);
    stats = session_stats_;
  }
  if (parts_.generator != nullptr) stats.staleness_max = parts_.generator->staleness_max();
  stats.items = items_delivered_;
  if (parts_.consumer_trace != nullptr) stats.trace_left_out += parts_.consumer_trace->left_out();
  stats.first_item = absl::Nanoseconds(first_item_ns_);
  stats.waiting = absl::Nanoseconds(waiting_ns_);
  stats.consuming = absl::Nanoseconds(consuming_ns_);
  return stats;
}

}  // namespace sluice
