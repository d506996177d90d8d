// A short queue of ranges.
#include "session/transfer/group_line.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "plan/groups.h"
#include "tensor/check.h"

namespace sluice {

bool GroupLine::MayFeed(const TransferRun& run, int64_t slots) {
  const size_t next = run.next_bucket();
  if (!groups_.empty() && groups_.back().Holds(&run, next)) return true;
  const CompiledTransfer& transfer = run.transfer();
  const size_t end = std::min(run.end(), GroupEnd(transfer.plan(), transfer.cut, next));
  size_t held = end - next;
  for (const Group& group : groups_) held += group.size();
  if (held > static_cast<size_t>(slots)) return false;
  groups_.push_back({&run, next, end});
  return true;
}

GroupLine::Group& GroupLine::Find(const TransferRun* run, size_t index) {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [run, index](const Group& group) {
    return group.Holds(run, index);
  });
  SLUICE_CHECK(found != groups_.end(), "a bucket of no group");
  return *found;
}

void GroupLine::Admitted(const TransferRun* run, size_t index) { ++Find(run, index).admitted; }

void GroupLine::Ended(const TransferRun* run, size_t index) {
  ++Find(run, index).ended;
  DropEnded();
}

void GroupLine::Cut(const TransferRun& run) {
  for (Group& group : groups_) {
    if (group.run == &run) group.end = std::max(group.begin, std::min(group.end, run.end()));
  }
  DropEnded();
}

absl::Status GroupLine::BeginHop(int hop) {
  Group& first = groups_.front();
  if (hop <= first.hop) {
    const BucketId id = first.run->transfer().plan().buckets[first.begin].id.WithRun(
        static_cast<uint64_t>(first.run->id()));
    return absl::InternalError(absl::StrCat("hop ", hop, " of the group that begins with bucket ",
                                            id.ToString(), " comes after its hop ", first.hop));
  }
  first.hop = hop;
  return absl::OkStatus();
}

std::string GroupLine::Describe() const {
  if (groups_.empty()) return "";
  const Group& first = groups_.front();
  return absl::StrCat("group 1 of ", groups_.size(), ": ", first.admitted, " of ", first.size(),
                      " buckets admitted, ", first.ended, " ended");
}

// Also a later one, if all of it is copies within this rank, or it was cut to nothing.
void GroupLine::DropEnded() {
  groups_.erase(std::remove_if(groups_.begin(), groups_.end(),
                               [](const Group& group) { return group.ended == group.size(); }),
                groups_.end());
}

}  // namespace sluice
