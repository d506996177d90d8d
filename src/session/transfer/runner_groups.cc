// Starts a runner's operations with a transport that takes them in groups.
#include <algorithm>
#include <limits>

#include "session/base/operation_cookie.h"
#include "session/transfer/runner.h"

namespace sluice {

// Starts the next hop of the first group, once all of it is there. Then every bucket has its slots,
// and what earlier hops, and copies, were for has been started.
absl::Status Runner::FlushHop() {
  std::vector<TransportOp>& messages = *carrier_.messages();
  if (messages.empty() || !carrier_.commanded_all() || !groups_.first_is_complete() ||
      carrier_.outstanding_messages() > 0 || carrier_.outstanding_copies() > carrier_.marks()) {
    return absl::OkStatus();
  }
  const auto work_of = [this](const TransportOp& op) -> const BucketWork& {
    return held_[SlotOf(op.cookie)].work;
  };
  const auto in_first = [this, &work_of](const TransportOp& op) {
    return groups_.IsInFirst(work_of(op).run(), work_of(op).index());
  };
  int hop = std::numeric_limits<int>::max();
  for (const TransportOp& op : messages) {
    if (in_first(op)) hop = std::min(hop, op.hop);
  }
  const auto later = std::stable_partition(
      messages.begin(), messages.end(),
      [&in_first, hop](const TransportOp& op) { return op.hop == hop && in_first(op); });
  hop_.assign(messages.begin(), later);
  if (hop_.empty()) return absl::OkStatus();
  // Buckets that have ended must not wait for this group. The group may wait for calls that other
  // ranks make only once these buckets are over.
  const absl::StatusOr<bool> marked = carrier_.MarkEndings();
  if (!marked.ok() || !*marked) return marked.status();
  if (absl::Status status = groups_.BeginHop(hop); !status.ok()) return status;
  messages.erase(messages.begin(), later);
  // Both ends of a link come to the same order.
  std::sort(hop_.begin(), hop_.end(), [&work_of](const TransportOp& a, const TransportOp& b) {
    return work_of(a).bucket().id < work_of(b).bucket().id;
  });
  return carrier_.transport()->Start(hop_);
}

}  // namespace sluice
