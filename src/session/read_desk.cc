// Reads, from order to answer.
#include "session/read_desk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/read_failure.h"
#include "tensor/check.h"

namespace sluice {
namespace {

constexpr size_t kEventBatch = 64;

}  // namespace

ReadDesk::ReadDesk(Source* source, std::vector<std::string> names, int slots, int spares, int kept,
                   std::byte* memory, int64_t block_bytes, const HedgeOptions& hedge,
                   const RetryOptions& retry)
    : source_(source),
      names_(std::move(names)),
      memory_(memory),
      block_bytes_(block_bytes),
      spare_count_(spares),
      retry_(retry),
      hedges_(hedge),
      slots_(static_cast<size_t>(slots)),
      blocks_(static_cast<size_t>(slots + spares + kept)),
      events_(kEventBatch) {
  for (int slot = 0; slot < slots; ++slot) Of(slot).block = slot;
  for (int spare = spares; spare-- > 0;) spares_.push_back(slots + spare);
  ready_.reserve(blocks_.size());
  retries_.reserve(slots_.size());
}

void ReadDesk::Exchange(int slot_number, int block) {
  Slot& slot = Of(slot_number);
  SLUICE_CHECK(!slot.ordered && !At(slot.block).reading, "a slot's memory is being read into");
  SLUICE_CHECK(!At(block).reading && At(block).slot == kNone, "a block that is in use");
  slot.block = block;
}

void ReadDesk::Order(const ReadOrder& order, int64_t now_ns) {
  Slot& slot = Of(order.slot);
  SLUICE_CHECK(!slot.ordered, "a slot has one order at a time");
  SLUICE_CHECK(!At(slot.block).reading, "a slot's memory is being read into");
  slot.order = order;
  slot.ordered = true;
  slot.attempts = 0;
  Begin(order.slot, slot.block, false, now_ns);
}

void ReadDesk::Begin(int slot_number, int block_number, bool hedge, int64_t now_ns) {
  Slot& slot = Of(slot_number);
  Block& block = At(block_number);
  block = {.slot = slot_number, .reading = true, .hedge = hedge, .begin_ns = now_ns};
  block.before = newest_;
  (newest_ == kNone ? oldest_ : At(newest_).after) = block_number;
  newest_ = block_number;
  ++outstanding_;
  if (hedge) {
    hedges_.CountHedge();
    ++counters_.hedges;
  } else {
    hedges_.CountRequest();
  }
  ready_.push_back({.object = slot.order.object,
                    .offset = slot.order.offset,
                    .bytes = slot.order.bytes,
                    .data = memory_ + int64_t{block_number} * block_bytes_,
                    .cookie = static_cast<uint64_t>(block_number),
                    .item = slot.order.item,
                    .attempt = slot.attempts++});
}

absl::Status ReadDesk::Flush() {
  if (ready_.empty()) return absl::OkStatus();
  absl::Status status = source_->Start(ready_);
  ready_.clear();
  return status;
}

void ReadDesk::End(int number) {
  Block& block = At(number);
  (block.before == kNone ? oldest_ : At(block.before).after) = block.after;
  (block.after == kNone ? newest_ : At(block.after).before) = block.before;
  block.reading = false;
  --outstanding_;
}

absl::StatusOr<int> ReadDesk::Poll(absl::Span<ReadDone> done, int64_t now_ns) {
  size_t count = 0;
  while (count < done.size() && outstanding_ > static_cast<int>(ready_.size())) {
    const size_t most = std::min(done.size() - count, events_.size());
    const absl::StatusOr<int> events = source_->Poll(absl::MakeSpan(events_).first(most));
    if (!events.ok()) return events.status();
    for (int i = 0; i < *events; ++i) {
      if (Take(events_[static_cast<size_t>(i)], now_ns, &done[count])) ++count;
    }
    if (static_cast<size_t>(*events) < most) break;
  }
  if (!cancelled_) {
    LookAtOldest(now_ns);
    BeginRetries(now_ns);
    if (absl::Status status = Flush(); !status.ok()) return status;
  }
  return static_cast<int>(count);
}

bool ReadDesk::Take(const ReadEvent& event, int64_t now_ns, ReadDone* done) {
  const int number = static_cast<int>(event.cookie);
  Block& block = At(number);
  SLUICE_CHECK(block.reading, "an answer to no read");
  End(number);
  const int slot_number = std::exchange(block.slot, kNone);
  if (slot_number == kNone) {  // the loser of a hedge
    spares_.push_back(number);
    return false;
  }
  Slot& slot = Of(slot_number);
  const int64_t latency_ns = now_ns - block.begin_ns;
  const int other = slot.block == number ? slot.rival : slot.block;
  const bool rivals = slot.rival != kNone;
  slot.rival = kNone;
  if (!event.status.ok()) {
    if (rivals) {
      // The other one may still answer. What has failed is free.
      slot.block = other;
      spares_.push_back(number);
      At(other).looked_at = true;
      slot.failure = event.status;
      return false;
    }
    const absl::Status status =
        block.timed_out ? absl::UnavailableError(absl::StrCat(
                              "no answer within ", absl::FormatDuration(retry_.request_timeout)))
                        : event.status;
    return TakeFailure(slot_number, status, now_ns, done);
  }
  hedges_.Learn(latency_ns);
  if (rivals) {
    slot.block = number;
    if (block.hedge) ++counters_.hedges_won;
    At(other).slot = kNone;
    source_->Cancel(static_cast<uint64_t>(other));
  }
  slot.ordered = false;
  *done = {slot_number, absl::OkStatus(), BlockOf(slot_number) + event.skew, latency_ns};
  return true;
}

bool ReadDesk::TakeFailure(int slot_number, const absl::Status& status, int64_t now_ns,
                           ReadDone* done) {
  Slot& slot = Of(slot_number);
  slot.failure = status;
  const bool transient = absl::IsUnavailable(status) || absl::IsCancelled(status);
  if (transient && !cancelled_ && slot.attempts < retry_.attempts_max) {
    const int doublings = std::min(slot.attempts - 1, 10);
    slot.retry_ns = now_ns + (absl::ToInt64Nanoseconds(retry_.backoff) << doublings);
    retries_.push_back(slot_number);
    return false;
  }
  slot.ordered = false;
  *done = {slot_number, Final(slot), nullptr, 0};
  return true;
}

absl::Status ReadDesk::Final(const Slot& slot) const {
  ReadFailure failure;
  failure.object = names_[static_cast<size_t>(slot.order.object)];
  failure.offset = slot.order.offset;
  failure.bytes = slot.order.bytes;
  failure.attempts = slot.attempts;
  failure.cause = std::string(slot.failure.message());
  return MakeReadFailure(slot.failure.code(), failure);
}

// The oldest reads are the first ones due, as the same times hold for all.
void ReadDesk::LookAtOldest(int64_t now_ns) {
  const int64_t timeout_ns = absl::ToInt64Nanoseconds(retry_.request_timeout);
  const int64_t hedge_ns = hedges_.threshold_ns();
  for (int number = oldest_; number != kNone; number = At(number).after) {
    Block& block = At(number);
    const int64_t age_ns = now_ns - block.begin_ns;
    if (age_ns < std::min(timeout_ns, hedge_ns)) return;
    if (age_ns >= timeout_ns && !block.timed_out) {
      block.timed_out = true;
      source_->Cancel(static_cast<uint64_t>(number));
    } else if (!block.looked_at && !TryHedge(number, now_ns)) {
      return;
    }
  }
}

// False if there is no use in looking at others now.
bool ReadDesk::TryHedge(int number, int64_t now_ns) {
  Block& block = At(number);
  if (block.slot == kNone || block.hedge || Of(block.slot).rival != kNone) {
    block.looked_at = true;
    return true;
  }
  if (spares_.empty() || !hedges_.MayHedge()) return false;
  block.looked_at = true;
  const int rival = spares_.back();
  spares_.pop_back();
  Of(block.slot).rival = rival;
  Begin(block.slot, rival, true, now_ns);
  return true;
}

void ReadDesk::BeginRetries(int64_t now_ns) {
  for (size_t i = 0; i < retries_.size();) {
    const int number = retries_[i];
    Slot& slot = Of(number);
    if (slot.retry_ns > now_ns) {
      ++i;
      continue;
    }
    retries_[i] = retries_.back();
    retries_.pop_back();
    slot.retry_ns = INT64_MAX;
    ++counters_.retries;
    Begin(number, slot.block, false, now_ns);
  }
}

int64_t ReadDesk::next_due_ns() const {
  int64_t due_ns = INT64_MAX;
  for (const int slot : retries_) due_ns = std::min(due_ns, Of(slot).retry_ns);
  if (oldest_ == kNone) return due_ns;
  const int64_t timeout_ns = absl::ToInt64Nanoseconds(retry_.request_timeout);
  for (int number = oldest_; number != kNone;) {
    const Block& block = blocks_[static_cast<size_t>(number)];
    if (!block.timed_out) due_ns = std::min(due_ns, block.begin_ns + timeout_ns);
    if (!block.looked_at && hedges_.threshold_ns() != INT64_MAX) {
      // Without a spare block, or share, an answer has to come first: look again soon, not at once.
      return std::min(due_ns, block.begin_ns + hedges_.threshold_ns());
    }
    if (!block.looked_at) return due_ns;
    number = block.after;
  }
  return due_ns;
}

void ReadDesk::CancelAll() {
  cancelled_ = true;
  retries_.clear();
  for (const ReadOp& op : ready_) End(static_cast<int>(op.cookie));
  ready_.clear();
  for (int number = oldest_; number != kNone; number = At(number).after) {
    source_->Cancel(static_cast<uint64_t>(number));
  }
}

}  // namespace sluice
