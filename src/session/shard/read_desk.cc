// Reads, from order to answer.
#include "session/shard/read_desk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/shard/read_failure.h"
#include "tensor/check.h"

namespace sluice {
namespace {

constexpr size_t kSourceEventBatch = 64;
// A look for spare memory, or for a share, that an answer may have given back.
constexpr int64_t kHedgeAgainNs = 1'000'000;

int64_t After(int64_t time_ns, int64_t by_ns) {
  return by_ns > INT64_MAX - time_ns ? INT64_MAX : time_ns + by_ns;
}

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
      timeout_ns_(absl::ToInt64Nanoseconds(retry.request_timeout)),
      hedges_(hedge),
      pace_(slots + spares),
      slots_(static_cast<size_t>(slots)),
      blocks_(static_cast<size_t>(slots + spares + kept)),
      progress_(blocks_.size()),
      events_(kSourceEventBatch) {
  for (int slot = 0; slot < slots; ++slot) Of(slot).block = slot;
  for (int spare = spares; spare-- > 0;) spares_.push_back(slots + spare);
  ready_.reserve(blocks_.size());
  retries_.reserve(slots_.size());
  waiting_.reserve(slots_.size());
}

void ReadDesk::SwapBlock(int slot_number, int block) {
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
  slot.serial = ++serial_;
  slot.ordered = true;
  slot.attempts = 0;
  slot.asked = {};
  Wait(order.slot);
  BeginWaiting(now_ns);
}

void ReadDesk::Wait(int slot) {
  const auto later = [this](int a, int b) { return Of(a).serial > Of(b).serial; };
  waiting_.push_back(slot);
  std::push_heap(waiting_.begin(), waiting_.end(), later);
}

void ReadDesk::BeginWaiting(int64_t now_ns) {
  const auto later = [this](int a, int b) { return Of(a).serial > Of(b).serial; };
  while (!waiting_.empty() && counted_ < pace_.limit()) {
    std::pop_heap(waiting_.begin(), waiting_.end(), later);
    const int slot = waiting_.back();
    waiting_.pop_back();
    Begin(slot, Of(slot).block, false, now_ns);
  }
}

void ReadDesk::Begin(int slot_number, int block_number, bool hedge, int64_t now_ns) {
  Slot& slot = Of(slot_number);
  Block& block = At(block_number);
  block = {
      .slot = slot_number, .reading = true, .hedge = hedge, .counted = true, .ordered_ns = now_ns};
  ReadProgress* const progress = &progress_[static_cast<size_t>(block_number)];
  *progress = {now_ns, now_ns};
  look_ns_ = std::min(look_ns_, After(now_ns, ShortestNs()));
  block.before = newest_;
  (newest_ == kNone ? oldest_ : At(newest_).after) = block_number;
  newest_ = block_number;
  ++outstanding_;
  ++counted_;
  stirred_ = true;
  if (hedge) {
    hedges_.CountHedge();
    ++counters_.hedges;
  } else {
    hedges_.CountRequest();
  }
  const bool follows =
      slot.order.object == last_object_ && slot.order.offset == last_end_ && slot.order.bytes > 0;
  if (!follows) ++counters_.runs;
  last_object_ = slot.order.object;
  last_end_ = slot.order.offset + slot.order.bytes;
  ready_.push_back({.object = slot.order.object,
                    .offset = slot.order.offset,
                    .bytes = slot.order.bytes,
                    .data = memory_ + int64_t{block_number} * block_bytes_,
                    .cookie = static_cast<uint64_t>(block_number),
                    .item = slot.order.item,
                    .attempt = slot.attempts++,
                    .may_join = slot.order.may_join && follows && !hedge && !ready_.empty(),
                    .batch = slot.order.batch,
                    .may_lend = slot.order.may_lend,
                    .aside = slot.order.aside,
                    .progress = progress});
}

absl::Status ReadDesk::Flush() {
  if (ready_.empty()) return absl::OkStatus();
  absl::Status status = source_->Start(ready_);
  if (status.ok()) {
    ready_.clear();
  } else {
    DropReady();  // none was started, so none will be answered
  }
  return status;
}

void ReadDesk::DropReady() {
  for (const ReadOp& op : ready_) End(static_cast<int>(op.cookie));
  ready_.clear();
}

void ReadDesk::End(int number) {
  Block& block = At(number);
  (block.before == kNone ? oldest_ : At(block.before).after) = block.after;
  (block.after == kNone ? newest_ : At(block.after).before) = block.before;
  block.reading = false;
  --outstanding_;
  Discount(&block);
}

void ReadDesk::Discount(Block* block) {
  if (std::exchange(block->counted, false)) --counted_;
}

int64_t ReadDesk::BegunNs(int block) const {
  return progress_[static_cast<size_t>(block)].begun_ns;
}

int64_t ReadDesk::LateNs(int block) const {
  return After(progress_[static_cast<size_t>(block)].moved_ns, timeout_ns_);
}

// No read needs a look sooner after its order, nor after its begin.
int64_t ReadDesk::ShortestNs() const { return std::min(timeout_ns_, hedges_.threshold_ns()); }

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
    LookAtReads(now_ns);
    QueueRetries(now_ns);
    BeginWaiting(now_ns);
    if (absl::Status status = Flush(); !status.ok()) return status;
  }
  return static_cast<int>(count);
}

bool ReadDesk::Take(ReadEvent& event, int64_t now_ns, ReadDone* done) {
  const int number = static_cast<int>(event.cookie);
  Block& block = At(number);
  SLUICE_CHECK(block.reading, "an answer to no read");
  stirred_ = true;
  End(number);
  const int slot_number = std::exchange(block.slot, kNone);
  if (slot_number == kNone) {  // the loser of a hedge
    spares_.push_back(number);
    return false;
  }
  Slot& slot = Of(slot_number);
  const int64_t begun_ns = BegunNs(number);
  const int64_t latency_ns =
      std::max<int64_t>(0, now_ns - (begun_ns == ReadProgress::kNotBegun ? now_ns : begun_ns));
  const int other = slot.block == number ? slot.rival : slot.block;
  const bool rivals = slot.rival != kNone;
  slot.rival = kNone;
  if (!event.status.ok()) {
    if (rivals) {
      // The other read may still answer. The block of the failed one is free.
      slot.block = other;
      spares_.push_back(number);
      At(other).looked_at = true;
      slot.failure = event.status;
      return false;
    }
    if (block.recalled && absl::IsCancelled(event.status) && !cancelled_) {
      --slot.attempts;  // it never was one
      Wait(slot_number);
      return false;
    }
    const absl::Status status =
        block.timed_out
            ? absl::UnavailableError(absl::StrCat("nearly nothing came for ",
                                                  absl::FormatDuration(retry_.request_timeout)))
            : event.status;
    return TakeFailure(slot_number, status, now_ns, done);
  }
  const int64_t threshold_ns = hedges_.threshold_ns();
  hedges_.Learn(latency_ns);
  if (hedges_.threshold_ns() != threshold_ns) look_ns_ = now_ns;
  pace_.Answered();
  if (rivals) {
    slot.block = number;
    if (block.hedge) ++counters_.hedges_won;
    At(other).slot = kNone;
    Discount(&At(other));
    source_->Cancel(static_cast<uint64_t>(other));
  }
  slot.ordered = false;
  const bool is_lent = event.lender != nullptr;
  *done = {.slot = slot_number,
           .data = is_lent ? event.lent : BlockOf(slot_number) + event.skew,
           .latency_ns = latency_ns,
           .at_once = event.at_once && !slot.order.aside,
           .aside = slot.order.aside,
           .lender = std::move(event.lender)};
  return true;
}

bool ReadDesk::TakeFailure(int slot_number, const absl::Status& status, int64_t now_ns,
                           ReadDone* done) {
  Slot& slot = Of(slot_number);
  slot.failure = status;
  const bool transient = absl::IsUnavailable(status) || absl::IsCancelled(status);
  absl::optional<absl::Duration> pause;
  if (transient && !cancelled_) pause = NextAttempt(retry_, status, slot.attempts, &slot.asked);
  if (pause) {
    slot.retry_ns = After(now_ns, absl::ToInt64Nanoseconds(*pause));
    retries_.push_back(slot_number);
    return false;
  }
  slot.ordered = false;
  *done = {.slot = slot_number, .status = Final(slot)};
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

// Reads lie in the order in which they were started. None was begun before it was started, so the
// first one that is too young for anything ends the look.
void ReadDesk::LookAtReads(int64_t now_ns) {
  const int64_t grace_ns = timeout_ns_ / 4;
  const int64_t pause_ns = now_ns - std::exchange(polled_ns_, now_ns);
  if (pause_ns > grace_ns && now_ns >= After(judge_ns_, timeout_ns_) && stirred_) {
    // Nobody has driven the source meanwhile, and it may have to catch up. Once, for who sleeps
    // until the grace is over sleeps a little longer than that.
    judge_ns_ = After(now_ns, grace_ns);
    stirred_ = false;
  }
  if (now_ns < look_ns_) return;
  look_ns_ = INT64_MAX;
  const int64_t shortest_ns = ShortestNs();
  bool may_hedge = true;
  for (int number = oldest_; number != kNone; number = At(number).after) {
    Block& block = At(number);
    const int64_t young_ns = After(block.ordered_ns, shortest_ns);
    if (now_ns < young_ns) {
      look_ns_ = std::min(look_ns_, young_ns);
      return;
    }
    if (!block.counted) continue;  // late already, or lost
    if (BegunNs(number) == ReadProgress::kNotBegun) {
      look_ns_ = std::min(look_ns_, After(now_ns, shortest_ns));
      continue;
    }
    const int64_t late_ns = std::max(LateNs(number), judge_ns_);
    if (now_ns >= late_ns) {
      GiveUp(number, now_ns);
      continue;
    }
    look_ns_ = std::min(look_ns_, late_ns);
    if (block.looked_at || hedges_.threshold_ns() == INT64_MAX) continue;
    const int64_t hedge_ns = After(BegunNs(number), hedges_.threshold_ns());
    if (now_ns < hedge_ns) {
      look_ns_ = std::min(look_ns_, hedge_ns);
    } else if (!may_hedge || !TryHedge(number, now_ns)) {
      // An answer has to come first: look again soon, not at once.
      may_hedge = false;
      look_ns_ = std::min(look_ns_, After(now_ns, kHedgeAgainNs));
    }
  }
}

void ReadDesk::GiveUp(int number, int64_t now_ns) {
  int begun = 0;
  for (int other = oldest_; other != kNone; other = At(other).after) {
    begun += At(other).counted && BegunNs(other) != ReadProgress::kNotBegun ? 1 : 0;
  }
  const bool fell = pace_.Late(BegunNs(number), begun, now_ns);
  At(number).timed_out = true;
  Discount(&At(number));
  source_->Cancel(static_cast<uint64_t>(number));
  if (fell) RecallQueued();
}

// Takes back reads that wait in the source, which would not know of the new limit.
void ReadDesk::RecallQueued() {
  for (int number = oldest_; number != kNone; number = At(number).after) {
    Block& block = At(number);
    const bool queued = block.slot != kNone && BegunNs(number) == ReadProgress::kNotBegun;
    if (!queued || block.hedge || Of(block.slot).rival != kNone || block.recalled) continue;
    block.recalled = true;
    source_->Cancel(static_cast<uint64_t>(number));
  }
}

// False if there is no use in looking at others now.
bool ReadDesk::TryHedge(int number, int64_t now_ns) {
  Block& block = At(number);
  if (block.slot == kNone || block.hedge || Of(block.slot).rival != kNone) {
    block.looked_at = true;
    return true;
  }
  if (spares_.empty() || !hedges_.MayHedge() || counted_ >= pace_.limit()) return false;
  block.looked_at = true;
  const int rival = spares_.back();
  spares_.pop_back();
  Of(block.slot).rival = rival;
  Begin(block.slot, rival, true, now_ns);
  return true;
}

void ReadDesk::QueueRetries(int64_t now_ns) {
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
    // Reads that wait in the source may wait for this order, as a generator's items do. Then
    // nothing else would ever make room for it.
    if (OthersWaitFor(number)) {
      Begin(number, slot.block, false, now_ns);
    } else {
      Wait(number);
    }
  }
}

bool ReadDesk::OthersWaitFor(int slot) const {
  for (int number = oldest_; number != kNone; number = At(number).after) {
    const Block& block = At(number);
    if (!block.counted || block.slot == kNone) continue;
    if (BegunNs(number) != ReadProgress::kNotBegun) return false;  // it will end by itself
    if (Of(block.slot).serial < Of(slot).serial) return false;
  }
  return true;
}

int64_t ReadDesk::next_due_ns() const {
  int64_t due_ns = oldest_ == kNone ? INT64_MAX : look_ns_;
  for (const int slot : retries_) due_ns = std::min(due_ns, Of(slot).retry_ns);
  return due_ns;
}

void ReadDesk::CancelAll() {
  cancelled_ = true;
  retries_.clear();
  waiting_.clear();
  DropReady();
  for (int number = oldest_; number != kNone; number = At(number).after) {
    source_->Cancel(static_cast<uint64_t>(number));
  }
}

}  // namespace sluice
