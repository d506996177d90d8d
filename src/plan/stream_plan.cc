// Positions, sharers and bucket names of a data stream.
#include "plan/stream_plan.h"

#include <algorithm>

#include "tensor/check.h"

namespace sluice {

int64_t PlaceSet::CountBelow(int64_t place) const {
  const PlaceSet below = {first, step, std::min(end, place)};
  return below.count();
}

bool ResumePoint::IsDone(int64_t at) const {
  if (at < position) return true;
  const auto after = std::upper_bound(
      done.begin(), done.end(), at,
      [](int64_t value, const PositionRange& range) { return value < range.begin; });
  return after != done.begin() && at < std::prev(after)->end;
}

StreamPlan::StreamPlan(const StreamPlanOptions& options, int rank)
    : options_(options), rank_(rank), order_(options.items, options.shuffle, options.seed) {
  SLUICE_CHECK(options.items <= kItemsMax, "too many items for bucket ids");
  SLUICE_CHECK(options.epochs < int64_t{1} << kRunBits, "too many epochs for bucket ids");
  SLUICE_CHECK(rank >= 0 && static_cast<size_t>(rank) < options.places.size(), "no such rank");
  for (size_t i = 0; i < options.places.size(); ++i) {
    const PlaceSet& places = options.places[i];
    SLUICE_CHECK(places.first >= 0 && places.step >= 1, "not a set of places");
    const auto same = std::find_if(groups_.begin(), groups_.end(),
                                   [&](const Group& group) { return group.places == places; });
    Group& group = same != groups_.end() ? *same : groups_.emplace_back(Group{places, {}});
    group.ranks.push_back(static_cast<int>(i));
  }
}

int64_t StreamPlan::NextPosition(int64_t position) const {
  const PlaceSet& mine = options_.places[static_cast<size_t>(rank_)];
  if (mine.count() == 0) return end();
  int64_t next = std::max(position, options_.resume.position);
  while (next < end()) {
    const int64_t place = next % items();
    if (place >= mine.end) {
      next += items() - place;
    } else if (place < mine.first) {
      next += mine.first - place;
    } else if (const int64_t past = (place - mine.first) % mine.step; past != 0) {
      next += std::min(mine.step - past, items() - place);
    } else if (options_.resume.IsDone(next)) {
      ++next;
    } else {
      return next;
    }
  }
  return end();
}

int64_t StreamPlan::CountFromResume() const {
  const PlaceSet& mine = options_.places[static_cast<size_t>(rank_)];
  const auto count_below = [&](int64_t position) {
    return position / items() * mine.count() + mine.CountBelow(position % items());
  };
  int64_t count = count_below(end()) - count_below(std::min(options_.resume.position, end()));
  for (const PositionRange& range : options_.resume.done) {
    const int64_t begin = std::min(range.begin, end());
    count -= count_below(std::min(range.end, end())) - count_below(begin);
  }
  return count;
}

absl::Span<const int> StreamPlan::Sharers(int64_t position) {
  sharers_.clear();
  if (!options_.exchange) {
    sharers_.push_back(rank_);
    return sharers_;
  }
  const int64_t place = position % items();
  for (const Group& group : groups_) {
    if (!group.places.Has(place)) continue;
    sharers_.insert(sharers_.end(), group.ranks.begin(), group.ranks.end());
  }
  std::sort(sharers_.begin(), sharers_.end());
  return sharers_;
}

BucketId StreamPlan::IdOf(int64_t position, int64_t piece, int reader) const {
  const uint64_t place = static_cast<uint64_t>(position % items());
  return BucketId({.run = static_cast<uint64_t>(EpochOf(position)),
                   .window = place >> kRoundBits,
                   .round = place & ((uint64_t{1} << kRoundBits) - 1),
                   .phase = static_cast<uint64_t>(piece),
                   .src = static_cast<uint64_t>(reader)});
}

}  // namespace sluice
