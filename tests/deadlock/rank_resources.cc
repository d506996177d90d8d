// Arena, stream and device slots.
#include "deadlock/rank_resources.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace sluice::deadlock {

std::optional<int> FirstFitArena::Take(int bytes) {
  int begin = 0;
  for (const auto& [taken, end] : taken_) {
    if (taken - begin >= bytes) break;
    begin = end;
  }
  if (begin + bytes > bytes_) return std::nullopt;
  taken_.emplace(begin, begin + bytes);
  return begin;
}

std::vector<size_t> LaunchStream::Launch() {
  std::vector<size_t> group;
  if (running_ > 0) return group;
  if (!in_order_) {
    group.assign(ready_.begin(), ready_.end());
    ready_.clear();
  } else if (next_ < moves_.size() && ready_.erase(moves_[next_]) > 0) {
    group.push_back(moves_[next_++]);
  }
  running_ = group.size();
  return group;
}

std::optional<size_t> DeviceSlots::Grant() {
  if (free_ == 0) return std::nullopt;
  auto chosen = asking_.begin();
  if (in_order_ && granted_ < items_.size()) {
    chosen = std::find(asking_.begin(), asking_.end(), items_[granted_]);
  }
  if (chosen == asking_.end()) return std::nullopt;
  const size_t item = *chosen;
  asking_.erase(chosen);
  ++granted_;
  --free_;
  return item;
}

void DeviceSlots::Take() {
  filled_.erase(items_[taken_]);
  ++taken_;
  ++free_;
}

}  // namespace sluice::deadlock
