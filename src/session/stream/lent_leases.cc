// Keeps the buffers that have lent items, and looks at their mappings.
#include "session/stream/lent_leases.h"

#include <algorithm>
#include <utility>

namespace sluice {

void LentLeases::Taken(int buffer, absl::Span<const DeliveredItem> items) {
  const auto is_lent = [](const DeliveredItem& item) { return item.lender != nullptr; };
  if (std::any_of(items.begin(), items.end(), is_lent)) held_.push_back(buffer);
}

bool LentLeases::Release(int buffer, absl::Span<const DeliveredItem> items) {
  const auto held = std::find(held_.begin(), held_.end(), buffer);
  if (held == held_.end()) return false;
  held_.erase(held);
  return Look(items);
}

bool LentLeases::LookAtHeld(const Delivery& delivery) {
  const bool before = gone();
  for (const int buffer : held_) Look(delivery.LeasedItems(buffer));
  return gone() && !before;
}

// One look at a mapping for all that a batch has of it.
bool LentLeases::Look(absl::Span<const DeliveredItem> items) {
  absl::Status status;
  for (size_t i = 0; i < items.size();) {
    const LentMemory* const lender = items[i].lender.get();
    int64_t end = 0;
    for (; i < items.size() && items[i].lender.get() == lender; ++i) {
      end = std::max(end, items[i].lent_end);
    }
    if (lender != nullptr) status.Update(lender->Check(end));
  }
  if (status.ok() || gone()) return false;
  status_ = std::move(status);
  gone_.store(true, std::memory_order_release);
  return true;
}

}  // namespace sluice
