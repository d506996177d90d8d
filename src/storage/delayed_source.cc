// Keeps finished reads in a heap by the time they are due.
#include "storage/delayed_source.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "storage/growing_ring.h"
#include "storage/wake_set.h"
#include "tensor/check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

class DelayedSource final : public Source {
 public:
  DelayedSource(std::unique_ptr<Source> inner, const DelayOptions& options,
                std::unique_ptr<WakeSet> wake)
      : inner_(std::move(inner)), options_(options), wake_(std::move(wake)) {}

  absl::string_view name() const override { return inner_->name(); }
  int64_t alignment() const override { return inner_->alignment(); }
  bool lends() const override { return inner_->lends(); }
  absl::Status Start(absl::Span<const ReadOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<ReadEvent> events) override;
  void Cancel(uint64_t cookie) override;
  int ready_fd() const override { return wake_->fd(); }

 private:
  // kInner: the inner source has it. kKept: finished there, and waiting for its time or Cancel.
  enum class State { kFree, kInner, kKept };
  // An outstanding read; its place in reads_ is the inner read's cookie.
  struct Read {
    State state = State::kFree;
    uint64_t serial = 0;
    bool cancelled = false;
    ReadFate fate;
    int64_t due_ns = 0;
    ReadEvent event;  // for the caller
  };
  struct Due {
    int64_t due_ns = 0;
    size_t read = 0;
    uint64_t serial = 0;  // the read's, unless that was cancelled and its place taken
    bool operator<(const Due& other) const { return due_ns > other.due_ns; }  // the top is first
  };

  size_t TakePlace();
  void TakeEvent(ReadEvent& inner, int64_t now_ns);
  void Give(size_t at);
  void GiveDue(int64_t now_ns);
  absl::Status TakeInner();
  void Forget();

  std::unique_ptr<Source> inner_;
  const DelayOptions options_;
  std::unique_ptr<WakeSet> wake_;
  std::vector<Read> reads_;
  std::vector<size_t> free_;
  uint64_t serial_ = 0;   // of the read started last
  std::vector<Due> due_;  // a heap
  std::vector<ReadOp> batch_;
  std::array<ReadEvent, 64> inner_events_;
  GrowingRing<ReadEvent> finished_;
};

size_t DelayedSource::TakePlace() {
  if (free_.empty()) {
    free_.push_back(reads_.size());
    reads_.emplace_back();
    // Room for all of them, so that giving one back allocates nothing.
    free_.reserve(reads_.capacity());
    due_.reserve(reads_.capacity());
  }
  const size_t at = free_.back();
  free_.pop_back();
  return at;
}

absl::Status DelayedSource::Start(absl::Span<const ReadOp> ops) {
  const int64_t now_ns = MonotonicNs();
  batch_.assign(ops.begin(), ops.end());
  for (ReadOp& op : batch_) {
    const size_t at = TakePlace();
    const ReadFate fate = FateOf(options_, op.item, op.attempt);
    reads_[at] = {State::kInner,        ++serial_, false, fate, now_ns + fate.latency_ns,
                  {.cookie = op.cookie}};
    op.cookie = at;
  }
  absl::Status status = inner_->Start(batch_);
  counters_ = inner_->counters();
  if (status.ok()) return status;
  for (const ReadOp& op : batch_) {
    reads_[op.cookie].state = State::kFree;
    free_.push_back(op.cookie);
  }
  return status;
}

absl::StatusOr<int> DelayedSource::Poll(absl::Span<ReadEvent> events) {
  if (absl::Status status = TakeInner(); !status.ok()) {
    Forget();
    return status;
  }
  GiveDue(MonotonicNs());
  size_t count = 0;
  while (count < events.size() && !finished_.empty()) events[count++] = finished_.Pop();
  wake_->WakeAt(due_.empty() ? WakeSet::kNever : due_.front().due_ns);
  wake_->SetReady(!finished_.empty());
  return static_cast<int>(count);
}

absl::Status Cancelled() { return absl::CancelledError("a delayed read: cancelled"); }

void DelayedSource::Cancel(uint64_t cookie) {
  for (size_t at = 0; at < reads_.size(); ++at) {
    Read& read = reads_[at];
    if (read.state == State::kFree || read.cancelled || read.event.cookie != cookie) continue;
    read.cancelled = true;
    if (read.state == State::kInner) {
      inner_->Cancel(at);
      return;
    }
    read.event.status = Cancelled();
    Give(at);
    wake_->SetReady(true);
    return;
  }
}

absl::Status DelayedSource::TakeInner() {
  int count = 0;
  do {
    absl::StatusOr<int> polled = inner_->Poll(absl::MakeSpan(inner_events_));
    counters_ = inner_->counters();
    if (!polled.ok()) return polled.status();
    count = *polled;
    const int64_t now_ns = MonotonicNs();
    for (int i = 0; i < count; ++i) TakeEvent(inner_events_[static_cast<size_t>(i)], now_ns);
  } while (count == static_cast<int>(inner_events_.size()));
  return absl::OkStatus();
}

absl::Status InjectedStatus(ReadFate::Fault fault) {
  switch (fault) {
    case ReadFate::Fault::kTransient:
      return absl::UnavailableError("injected: a fault that passes");
    case ReadFate::Fault::kPermanent:
      return absl::FailedPreconditionError("injected: a fault that stays");
    case ReadFate::Fault::kShort:
      return absl::DataLossError("injected: the object ends before");
    case ReadFate::Fault::kNone:
    case ReadFate::Fault::kHang:
      break;
  }
  return absl::OkStatus();
}

void DelayedSource::TakeEvent(ReadEvent& inner, int64_t now_ns) {
  const auto at = static_cast<size_t>(inner.cookie);
  SLUICE_CHECK(at < reads_.size() && reads_[at].state == State::kInner,
               "the inner source ended a read that it did not have");
  Read& read = reads_[at];
  read.state = State::kKept;
  read.event.skew = inner.skew;
  read.event.at_once = inner.at_once && read.fate.latency_ns == 0;
  read.event.lent = inner.lent;
  read.event.lender = std::move(inner.lender);
  read.event.status = inner.status.ok() ? InjectedStatus(read.fate.fault) : inner.status;
  const bool hangs = read.fate.fault == ReadFate::Fault::kHang;
  // The inner source may have had the bytes already when it was told.
  if (read.cancelled && hangs) read.event.status.Update(Cancelled());
  if (read.cancelled) return Give(at);
  if (hangs) return;
  if (read.due_ns <= now_ns) return Give(at);
  due_.push_back({read.due_ns, at, read.serial});
  std::push_heap(due_.begin(), due_.end());
}

void DelayedSource::GiveDue(int64_t now_ns) {
  while (!due_.empty() && due_.front().due_ns <= now_ns) {
    std::pop_heap(due_.begin(), due_.end());
    const Due due = due_.back();
    due_.pop_back();
    const Read& read = reads_[due.read];
    // A cancelled read's entry stays in the heap.
    if (read.state == State::kKept && read.serial == due.serial) Give(due.read);
  }
}

void DelayedSource::Give(size_t at) {
  finished_.Push(std::move(reads_[at].event));
  reads_[at].state = State::kFree;
  free_.push_back(at);
}

void DelayedSource::Forget() {
  reads_.clear();
  free_.clear();
  due_.clear();
  finished_.Clear();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Source>> MakeDelayedSource(std::unique_ptr<Source> inner,
                                                          const DelayOptions& options) {
  SLUICE_RETURN_IF_ERROR(CheckDelayOptions(options));
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<WakeSet> wake, WakeSet::Make());
  SLUICE_RETURN_IF_ERROR(wake->Watch(inner->ready_fd(), EPOLLIN));
  return std::make_unique<DelayedSource>(std::move(inner), options, std::move(wake));
}

}  // namespace sluice
