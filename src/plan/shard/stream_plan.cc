// Positions, sharers and bucket names of a data stream.
#include "plan/shard/stream_plan.h"

#include <algorithm>

#include "tensor/check.h"
#include "tensor/stable_hash.h"

namespace sluice {

StreamPlan::StreamPlan(const StreamPlanOptions& options, int rank)
    : options_(options),
      rank_(rank),
      order_(options.items, options.shuffle, options.seed, options.block_items) {
  SLUICE_CHECK(options.items <= kItemsMax, "too many items for bucket ids");
  SLUICE_CHECK(options.epochs < int64_t{1} << kRunBits, "too many epochs for bucket ids");
  SLUICE_CHECK(options.epochs <= kPositionsMax / options.items, "too many items of all epochs");
  SLUICE_CHECK(rank >= 0 && static_cast<size_t>(rank) < options.places.size(), "no such rank");
  for (size_t i = 0; i < options.places.size(); ++i) {
    const PlaceSet& places = options.places[i];
    SLUICE_CHECK(places.first >= 0 && places.step >= 1, "not a set of places");
    const auto same = std::find_if(groups_.begin(), groups_.end(),
                                   [&](const Group& group) { return group.places == places; });
    Group& group = same != groups_.end() ? *same : groups_.emplace_back(Group{places, {}});
    group.ranks.push_back(static_cast<int>(i));
  }
  released_ = Released(options.items, places(), options.released);
  std::vector<PlaceSet> sets;
  for (const Group& group : groups_) sets.push_back(group.places);
  covers_released_ = CoverReleased(options.items, sets, options.released);
  to_come_ = released_.CountBelow(end());
}

int64_t StreamPlan::NextPosition(int64_t position) const {
  return std::min(released_.Next(position), end());
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

// Ranks that ask for equal places take turns. If others share some of these places, no turn fits
// all, and a hash deals.
int StreamPlan::MakerOf(int64_t position, absl::Span<const int> sharers) const {
  const uint64_t count = static_cast<uint64_t>(sharers.size());
  if (count < 2) return sharers[0];
  const int64_t place = position % items();
  for (const Group& group : groups_) {
    if (group.ranks.size() != sharers.size() || !group.places.Has(place)) continue;
    const int64_t turn = (place - group.places.first) / group.places.step + EpochOf(position);
    return sharers[static_cast<uint64_t>(turn) % count];
  }
  StableHash hash;
  hash.AddSigned(position);
  return sharers[hash.value() % count];
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
