// The next position, or a bit for every one.
#include "stream/delivery_check.h"

namespace sluice::bench {

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

}  // namespace sluice::bench
