// Cursors merged, and kept up to date.
#include "plan/shard/cursor.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// A rank's own part takes over earlier releases within two limits: kTakeOverMax looks, and
// kTakeOverRanges ranges.
constexpr int64_t kTakeOverMax = int64_t{1} << 16;
constexpr size_t kTakeOverRanges = 64;

std::vector<MemberRange> AllRanges(const ReleasedPart& part) {
  std::vector<MemberRange> ranges;
  if (part.count > 0) ranges.push_back({0, part.count});
  ranges.insert(ranges.end(), part.done.begin(), part.done.end());
  return ranges;
}

// The releases that both have; both have the same places.
ReleasedPart Both(const ReleasedPart& a, const ReleasedPart& b) {
  ReleasedPart both;
  both.places = a.places;
  const std::vector<MemberRange> x = AllRanges(a);
  const std::vector<MemberRange> y = AllRanges(b);
  for (size_t i = 0, j = 0; i < x.size() && j < y.size();) {
    const MemberRange common = {std::max(x[i].begin, y[j].begin), std::min(x[i].end, y[j].end)};
    if (common.begin < common.end) {
      if (common.begin == both.end_index()) {
        (both.done.empty() ? both.count : both.done.back().end) = common.end;
      } else {
        both.done.push_back(common);
      }
    }
    ++(x[i].end < y[j].end ? i : j);
  }
  return both;
}

// One part for each set of places, in their order.
ReleasedLayer InOrder(ReleasedLayer layer) {
  const auto key = [](const ReleasedPart& part) {
    return std::tuple(part.places.step, part.places.end, part.places.first);
  };
  std::stable_sort(layer.begin(), layer.end(),
                   [&](const ReleasedPart& a, const ReleasedPart& b) { return key(a) < key(b); });
  ReleasedLayer ordered;
  for (ReleasedPart& part : layer) {
    if (part.places.count() == 0) continue;  // it counts nothing
    if (!ordered.empty() && ordered.back().places == part.places) {
      ordered.back() = Both(ordered.back(), part);
    } else {
      ordered.push_back(std::move(part));
    }
  }
  return ordered;
}

}  // namespace

absl::StatusOr<Cursor> MergeCursors(absl::Span<const Cursor> cursors) {
  if (cursors.empty()) return absl::InvalidArgumentError("no cursors to merge");
  Cursor merged = cursors[0];
  merged.layers.assign(1, {});
  for (const Cursor& cursor : cursors) {
    if (cursor.items != merged.items || cursor.shuffle != merged.shuffle ||
        cursor.seed != merged.seed || cursor.block_items != merged.block_items) {
      return absl::InvalidArgumentError(absl::StrCat("cursors of different streams: '",
                                                     cursors[0].ToText().substr(0, 200), "' and '",
                                                     cursor.ToText().substr(0, 200), "'"));
    }
    if (merged.data == 0) merged.data = cursor.data;
    if (cursor.data != 0 && cursor.data != merged.data) {
      return absl::InvalidArgumentError(
          "cursors of different data sets: their items are not the "
          "same ones, though they are as many");
    }
    for (size_t i = 0; i < cursor.layers.size(); ++i) {
      const ReleasedLayer& layer = cursor.layers[i];
      if (i == 0) {
        merged.layers[0].insert(merged.layers[0].end(), layer.begin(), layer.end());
      } else if (std::find(merged.layers.begin() + 1, merged.layers.end(), layer) ==
                 merged.layers.end()) {
        merged.layers.push_back(layer);
      }
    }
  }
  merged.layers[0] = InOrder(std::move(merged.layers[0]));
  return merged;
}

ReleaseLog::ReleaseLog(const Cursor& order, const StreamPlan* plan) : order_(order), plan_(plan) {
  own_.places = plan->places();
  order_.layers.clear();
  needs_plan_ = !TakeOver();
}

// False: too much was released, here and there, before.
bool ReleaseLog::TakeOver() {
  const Released& before = plan_->released();
  if (own_.places.count() == 0) return true;
  int64_t at = before.Next(0);
  own_.count = own_.places.IndexAt(at, order_.items);
  std::vector<MemberRange> ranges;
  int64_t index = own_.count;
  for (; PositionOf(index) < before.end(); ++index) {
    if (index - own_.count > kTakeOverMax || ranges.size() > kTakeOverRanges) return false;
    if (!before.Has(PositionOf(index))) continue;
    if (!ranges.empty() && ranges.back().end == index) {
      ++ranges.back().end;
    } else {
      ranges.push_back({index, index + 1});
    }
  }
  own_.done = std::move(ranges);
  return true;
}

// The first of this rank's from there on that was not released before.
int64_t ReleaseLog::NextIndex(int64_t index) const {
  return own_.places.IndexAt(plan_->released().Next(PositionOf(index)), order_.items);
}

// Two ranges are one if nothing between them is still to come.
void ReleaseLog::Release(int64_t position) {
  std::vector<MemberRange>& done = own_.done;
  const int64_t index = own_.places.IndexAt(position, order_.items);
  auto at =
      std::lower_bound(done.begin(), done.end(), index,
                       [](const MemberRange& range, int64_t value) { return range.begin < value; });
  at = done.insert(at, {index, index + 1});
  const auto after = std::next(at);
  if (after != done.end() && NextIndex(at->end) >= after->begin) {
    at->end = after->end;
    at = std::prev(done.erase(after));
  }
  if (at != done.begin()) {
    const auto before = std::prev(at);
    if (NextIndex(before->end) >= at->begin) {
      before->end = at->end;
      done.erase(at);
    }
  }
  if (NextIndex(own_.count) >= done.front().begin) {
    own_.count = done.front().end;
    done.erase(done.begin());
  }
}

Cursor ReleaseLog::cursor() const {
  Cursor cursor = order_;
  cursor.layers.emplace_back();
  if (own_.places.count() > 0) cursor.layers[0].push_back(own_);
  const bool has_all = !needs_plan_ || PositionOf(own_.count) >= plan_->released().end();
  // Earlier releases at places that no rank has now stand nowhere else.
  if (has_all && plan_->covers_released()) return cursor;
  const std::vector<ReleasedLayer>& before = plan_->released_layers();
  cursor.layers.insert(cursor.layers.end(), before.begin(), before.end());
  return cursor;
}

}  // namespace sluice
