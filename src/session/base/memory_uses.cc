// Ranges of addresses in the order of their begins.
#include "session/base/memory_uses.h"

#include <algorithm>

namespace sluice {

void MemoryUses::Clear() {
  by_begin_.clear();
  longest_ = 0;
}

void MemoryUses::Add(const ViewUse& use, const BoundView& view) {
  if (view.base == nullptr) return;
  const AddressRange range = RangeOf(view);
  by_begin_.insert({range.begin, {range.end, use}});
  longest_ = std::max(longest_, range.end - range.begin);
}

absl::optional<ViewUse> MemoryUses::FindOverlap(const BoundView& view, const ViewOf& view_of) {
  if (view.base == nullptr) return absl::nullopt;
  const AddressRange range = RangeOf(view);
  // Memory that begins earlier ends before the view begins.
  auto at = by_begin_.lower_bound(range.begin - std::min(range.begin, longest_));
  while (at != by_begin_.end() && at->first < range.end) {
    const BoundView* const other = view_of(at->second.use);
    if (other == nullptr) {
      at = by_begin_.erase(at);
      continue;
    }
    if (at->second.end > range.begin && Overlap(view, *other)) return at->second.use;
    ++at;
  }
  return absl::nullopt;
}

}  // namespace sluice
