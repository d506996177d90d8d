// Groups: how buckets are cut into units that a transport without tags can start one after another,
// in one order on all ranks.
//
// Such a transport blocks as a group does, so a rank must hold all of its part of a group before it
// starts it: a group's part has to fit the budget on every rank. Whole rounds and phases are cut
// off, because every rank can tell from an id alone to which group a bucket belongs.
#ifndef SLUICE_SRC_PLAN_GROUPS_H_
#define SLUICE_SRC_PLAN_GROUPS_H_

#include <cstddef>
#include <cstdint>

#include "plan/bucket.h"
#include "plan/plan.h"

namespace sluice {

// The most buckets of one round, and of one phase of a round, that a rank is a member of; and of
// one channel alone.
struct GroupNeed {
  int64_t round = 0;
  int64_t phase = 0;
  int64_t channel_round = 0;
  int64_t channel_phase = 0;

  friend bool operator==(const GroupNeed&, const GroupNeed&) = default;
};
GroupNeed NeedOf(const Plan& plan);
// The most of each.
GroupNeed Most(const GroupNeed& a, const GroupNeed& b);

// Which buckets of a run and a window make up a group. Equal on all ranks.
struct GroupCut {
  int64_t rounds = 1;   // so many rounds, if phases is 0
  int64_t phases = 1;   // so many phases of a round; 0: all
  bool single = false;  // one bucket
};

// The cut for a plan in which no rank needs more than `most`. With `slots` (0: no limit) equal
// slots on each rank. Where it can, a group takes half of them, so that one is filled while another
// moves. A group has at most `max_in_flight` buckets of a channel, and never many.
GroupCut CutFor(const GroupNeed& most, int64_t slots, int max_in_flight);

// True if both buckets, of one run, are in one group.
bool InOneGroup(const GroupCut& cut, const BucketId& a, const BucketId& b);

// The end of the group that begins with bucket `begin` of the plan, or earlier.
size_t GroupEnd(const Plan& plan, const GroupCut& cut, size_t begin);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_GROUPS_H_
