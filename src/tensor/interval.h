// Sets of indices along one tensor dimension, as ascending intervals.
#ifndef SLUICE_SRC_TENSOR_INTERVAL_H_
#define SLUICE_SRC_TENSOR_INTERVAL_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace sluice {

// Indices [begin, end); `position` counts the indices of the list before them.
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t position = 0;

  int64_t length() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// An ascending list of indices: disjoint intervals, none empty, no two touching.
class IntervalList {
 public:
  IntervalList() = default;
  // [0, size)
  explicit IntervalList(int64_t size) { Append(0, size); }

  // Adds [begin, end) at the end; begin must not lie before the present end. Empty ranges and
  // touching ones are folded away.
  void Append(int64_t begin, int64_t end);

  // Adds the indices at positions [from, to) of `other`.
  void AppendSlice(const IntervalList& other, int64_t from, int64_t to);

  // The indices in [begin, end), counted from `begin` on.
  IntervalList From(int64_t begin, int64_t end) const;
  // All of them `by` higher, which is not negative.
  IntervalList MovedUp(int64_t by) const;

  absl::Span<const Interval> intervals() const { return intervals_; }
  bool empty() const { return intervals_.empty(); }
  int64_t size() const {
    return empty() ? 0 : intervals_.back().position + intervals_.back().length();
  }

  // Position of `index`, which must be in the list. O(log intervals).
  int64_t PositionOf(int64_t index) const;

  friend bool operator==(const IntervalList&, const IntervalList&) = default;

 private:
  std::vector<Interval> intervals_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_INTERVAL_H_
