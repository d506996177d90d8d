// Clocks, checks and sleeps.
#include "stream/consumer.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cstddef>

#include "absl/time/time.h"
#include "base/clock.h"
#include "job/host_clock.h"
#include "workload/local_part.h"

namespace sluice::bench {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

double Seconds(int64_t ns) { return static_cast<double>(ns) / kNsPerSecond; }

}  // namespace

DeliveryCheck::DeliveryCheck(const StreamPlan& plan, bool in_order)
    : plan_(plan),
      in_order_(in_order),
      expected_(plan_.CountToCome()),
      position_(plan_.NextPosition(0)) {
  if (in_order) return;
  due_.resize(static_cast<size_t>(plan_.end()));
  for (int64_t at = position_; at < plan_.end(); at = plan_.NextPosition(at + 1)) {
    due_[static_cast<size_t>(KeyOf(plan_.ItemAt(at), plan_.EpochOf(at)))] = true;
  }
}

bool DeliveryCheck::Take(int64_t item, int64_t epoch) {
  if (in_order_) {
    const int64_t at = position_;
    if (at >= plan_.end()) return false;
    position_ = plan_.NextPosition(at + 1);
    return item == plan_.ItemAt(at) && epoch == plan_.EpochOf(at);
  }
  const int64_t key = KeyOf(item, epoch);
  if (item < 0 || item >= plan_.items() || key < 0 || key >= plan_.end()) return false;
  const bool is_due = due_[static_cast<size_t>(key)];
  due_[static_cast<size_t>(key)] = false;
  return is_due;
}

Consumer::Consumer(const Contents* contents, const ItemCheck* check, const StreamPlan& plan,
                   const ConsumerOptions& options, ProgressBar* bar)
    : contents_(contents),
      check_(check),
      options_(options),
      bar_(bar),
      delivery_(plan, options.in_order),
      wanted_(options.stop_items > 0 ? std::min(options.stop_items, delivery_.expected())
                                     : delivery_.expected()) {
  // Otherwise the kernel may wake a sleeper 50 us late. An error changes nothing.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

void Consumer::Start() {
  begin_ns_ = MonotonicNs();
  end_ns_ = begin_ns_;
}

void Consumer::Asked() { asked_ns_ = MonotonicNs(); }

void Consumer::Arrived(bool waited) {
  const int64_t now_ns = MonotonicNs();
  if (items_ == 0) {
    first_ns_ = now_ns;
  } else {
    later_wait_ns_ += now_ns - asked_ns_;
  }
  wait_ns_ += now_ns - asked_ns_;
  if (waited || items_ == 0) due_ns_ = now_ns;
}

// What is delivered may lie in a mapped file, which nobody writes to.
TensorView Consumer::Corrupted(const TensorView& view) {
  const absl::Span<const std::byte> bytes = BytesOf(view);
  if (bytes.empty()) return view;
  corrupted_.assign(bytes.begin(), bytes.end());
  corrupted_[0] ^= std::byte{0x55};
  return DenseView(corrupted_.data(), view.shape, view.dtype);
}

void Consumer::Touch(const TensorView& view) {
  constexpr size_t kPage = 4096;
  const absl::Span<const std::byte> bytes = BytesOf(view);
  unsigned sum = 0;
  for (size_t i = 0; i < bytes.size(); i += kPage) sum += static_cast<unsigned>(bytes[i]);
  const volatile unsigned kept = sum;  // so that nothing of this is left out
  touched_ += kept;
}

int64_t Consumer::WrongOf(int64_t item, int64_t epoch, const TensorView& view) {
  const int64_t wrong = check_->Wrong(item, view);
  return delivery_.Take(item, epoch) ? wrong : std::max<int64_t>(1, wrong);
}

void Consumer::Consume(int64_t item, int64_t epoch, const TensorView& view) {
  const int64_t begin_ns = MonotonicNs();
  if (options_.touches) Touch(view);
  wrong_ += WrongOf(item, epoch, items_ < options_.corrupt_items ? Corrupted(view) : view);
  ++items_;
  bytes_ += contents_->BytesOf(item);
  if (options_.hash_items) hash_.Add(item, epoch, BytesOf(view));
  due_ns_ = std::max(due_ns_ + options_.consume_ns, MonotonicNs());
  if (options_.consume_ns > 0) SleepUntilNs(due_ns_);
  end_ns_ = MonotonicNs();
  if (items_ == wanted_ / 2) half_ns_ = end_ns_;
  consume_ns_ += end_ns_ - begin_ns;
  bar_->Advance(items_, bytes_);
}

void Consumer::AddTo(RankOutcome* outcome) const {
  outcome->stats.items = items_;
  outcome->stats.bytes = bytes_;
  outcome->wrong = wrong_;
  outcome->item_hash = hash_.value();
  outcome->seconds = Seconds(end_ns_ - begin_ns_);
  outcome->wait_s = Seconds(wait_ns_);
  outcome->stats.consuming = absl::Nanoseconds(consume_ns_);
  outcome->stats.first_item = absl::Nanoseconds(items_ == 0 ? 0 : first_ns_ - begin_ns_);
  if (items_ == 0) return;
  if (half_ns_ > 0) outcome->half_s = Seconds(half_ns_ - begin_ns_);
  outcome->later_wait_s = Seconds(later_wait_ns_);
}

}  // namespace sluice::bench
