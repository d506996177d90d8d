// Decides which reads may go, and in which order.
#include "session/shard/grouped_reads.h"

#include <algorithm>
#include <tuple>

#include "tensor/check.h"

namespace sluice {

void GroupedReads::Announce(int64_t group, bool reads) {
  SLUICE_CHECK(group >= reached_, "groups come in order");
  reached_ = group;
  if (!reads) return;
  if (groups_.empty() || groups_.back().number != group) groups_.push_back({.number = group});
  ++groups_.back().announced;
}

GroupedReads::Group& GroupedReads::Of(int64_t number) {
  const auto at =
      std::lower_bound(groups_.begin(), groups_.end(), number,
                       [](const Group& group, int64_t wanted) { return group.number < wanted; });
  SLUICE_CHECK(at != groups_.end() && at->number == number, "a read that was not announced");
  return *at;
}

void GroupedReads::Add(int64_t group, const ReadOrder& order) {
  ++Of(group).added;
  kept_.push_back({group, order});
}

bool GroupedReads::MayGo(int64_t number, int64_t oldest) {
  const Group& group = Of(number);
  return number <= oldest || (number < reached_ && group.added == group.announced);
}

absl::Span<const ReadOrder> GroupedReads::Take(int64_t oldest) {
  orders_.clear();
  const bool all = 2 * kept_.size() >= slots_;
  const auto stays = std::partition(kept_.begin(), kept_.end(), [&](const Kept& kept) {
    return all || MayGo(kept.group, oldest);
  });
  std::sort(kept_.begin(), stays, [](const Kept& a, const Kept& b) {
    return std::tie(a.group, a.order.object, a.order.offset) <
           std::tie(b.group, b.order.object, b.order.offset);
  });
  for (auto kept = kept_.begin(); kept != stays; ++kept) {
    ReadOrder order = kept->order;
    order.may_join = !orders_.empty() && orders_.back().object == order.object &&
                     orders_.back().offset + orders_.back().bytes == order.offset;
    orders_.push_back(order);
  }
  kept_.erase(kept_.begin(), stays);
  while (!groups_.empty() && groups_.front().number < reached_ &&
         groups_.front().added == groups_.front().announced) {
    // Reads of the group that are still kept will be looked up once more.
    const int64_t number = groups_.front().number;
    const bool waits = std::any_of(kept_.begin(), kept_.end(),
                                   [&](const Kept& kept) { return kept.group == number; });
    if (waits) break;
    groups_.pop_front();
  }
  return orders_;
}

void GroupedReads::Clear() { kept_.clear(); }

}  // namespace sluice
