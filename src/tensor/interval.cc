// Ascending interval lists.
#include "tensor/interval.h"

#include <algorithm>

#include "tensor/check.h"

namespace sluice {

void IntervalList::Append(int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (!intervals_.empty()) {
    SLUICE_CHECK(begin >= intervals_.back().end, "intervals must ascend");
    if (begin == intervals_.back().end) {
      intervals_.back().end = end;
      return;
    }
  }
  intervals_.push_back({begin, end, size()});
}

void IntervalList::AppendSlice(const IntervalList& other, int64_t from, int64_t to) {
  from = std::max<int64_t>(from, 0);
  to = std::min(to, other.size());
  if (from >= to) return;
  auto it = std::upper_bound(other.intervals_.begin(), other.intervals_.end(), from,
                             [](int64_t p, const Interval& i) { return p < i.position; });
  for (--it; it != other.intervals_.end() && it->position < to; ++it) {
    const int64_t first = std::max(from, it->position);
    const int64_t last = std::min(to, it->position + it->length());
    Append(it->begin + (first - it->position), it->begin + (last - it->position));
  }
}

IntervalList IntervalList::From(int64_t begin, int64_t end) const {
  IntervalList found;
  auto it = std::upper_bound(intervals_.begin(), intervals_.end(), begin,
                             [](int64_t i, const Interval& interval) { return i < interval.end; });
  for (; it != intervals_.end() && it->begin < end; ++it) {
    found.Append(std::max(it->begin, begin) - begin, std::min(it->end, end) - begin);
  }
  return found;
}

IntervalList IntervalList::MovedUp(int64_t by) const {
  IntervalList moved = *this;
  for (Interval& interval : moved.intervals_) {
    interval.begin += by;
    interval.end += by;
  }
  return moved;
}

int64_t IntervalList::PositionOf(int64_t index) const {
  auto it =
      std::upper_bound(intervals_.begin(), intervals_.end(), index,
                       [](int64_t i, const Interval& interval) { return i < interval.begin; });
  SLUICE_CHECK(it != intervals_.begin(), "index is not in the list");
  --it;
  SLUICE_CHECK(index < it->end, "index is not in the list");
  return it->position + (index - it->begin);
}

}  // namespace sluice
