// The trainer of the benchmark: takes items, checks them, and computes with each for a set time.
//
// All modes deliver to the same one, so that they are timed and checked alike.
#ifndef SLUICE_BENCH_STREAM_CONSUMER_H_
#define SLUICE_BENCH_STREAM_CONSUMER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/shard/stream_plan.h"
#include "report/progress_bar.h"
#include "sluice/tensor.h"
#include "stream/item_check.h"
#include "stream/outcome.h"

namespace sluice::bench {

// Which items come, and in which order: each that is expected once, and no other.
class DeliveryCheck {
 public:
  // `plan` is copied.
  DeliveryCheck(const StreamPlan& plan, bool in_order);

  // An item has come. False if it is not one that is due: the next one, or any where there is no
  // order.
  bool Take(int64_t item, int64_t epoch);

  int64_t expected() const { return expected_; }

 private:
  int64_t KeyOf(int64_t item, int64_t epoch) const { return epoch * plan_.items() + item; }

  StreamPlan plan_;
  const bool in_order_;
  const int64_t expected_;
  int64_t position_;
  std::vector<bool> due_;  // by KeyOf; only without an order
};

struct ConsumerOptions {
  int64_t consume_ns = 0;  // with each item
  int64_t stop_items = 0;  // 0: all
  int64_t corrupt_items = 0;
  bool touches = false;  // a byte of each page
  bool in_order = true;
  bool hash_items = false;
};

// Computing is sleeping until a deadline: a step begins when the item has come, or if it was there
// before, when the step before was due to end. So late wake-ups do not add up. Checking an item
// happens within its step, and makes it longer only where it takes longer.
//
// Thread: one, which sleeps as exactly as it can from now on.
class Consumer {
 public:
  // `contents`, `check` and `bar` must outlive this object. Its clock starts with Start.
  Consumer(const Contents* contents, const ItemCheck* check, const StreamPlan& plan,
           const ConsumerOptions& options, ProgressBar* bar);

  // The run begins.
  void Start();
  // From asking for the next item or batch to its arrival; `waited` if it was not there at once.
  void Asked();
  void Arrived(bool waited);
  // Checks and computes.
  void Consume(int64_t item, int64_t epoch, const TensorView& view);

  // No more items are wanted.
  bool done() const { return items_ >= wanted_; }
  int64_t wanted() const { return wanted_; }
  int64_t left() const { return wanted_ - items_; }

  // Items, bytes, times and what is wrong; the rest is the mode's.
  void AddTo(RankOutcome* outcome) const;

 private:
  // A copy of the item with a wrong byte; valid until the next call.
  TensorView Corrupted(const TensorView& view);
  void Touch(const TensorView& view);
  int64_t WrongOf(int64_t item, int64_t epoch, const TensorView& view);

  const Contents* const contents_;
  const ItemCheck* const check_;
  const ConsumerOptions options_;
  ProgressBar* const bar_;
  DeliveryCheck delivery_;
  const int64_t wanted_;

  int64_t begin_ns_ = 0;
  int64_t asked_ns_ = 0;
  int64_t first_ns_ = 0;  // when the first item arrived
  int64_t half_ns_ = 0;   // when half of the items were consumed
  int64_t end_ns_ = 0;    // of the last step
  int64_t due_ns_ = 0;    // when the step should have ended
  int64_t wait_ns_ = 0;
  int64_t later_wait_ns_ = 0;  // without the first item's
  int64_t consume_ns_ = 0;
  int64_t items_ = 0;
  int64_t bytes_ = 0;
  int64_t wrong_ = 0;
  ItemHash hash_;
  std::vector<std::byte> corrupted_;
  unsigned touched_ = 0;  // a sum of what was touched
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_CONSUMER_H_
