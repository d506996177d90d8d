// Which items come, and in which order: each that is expected once, and no other.
#ifndef SLUICE_BENCH_STREAM_DELIVERY_CHECK_H_
#define SLUICE_BENCH_STREAM_DELIVERY_CHECK_H_

#include <cstdint>
#include <vector>

#include "plan/shard/stream_plan.h"

namespace sluice::bench {

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

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_DELIVERY_CHECK_H_
