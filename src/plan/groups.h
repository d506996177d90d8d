// Groups: how buckets are cut into units that a transport without tags can start one after another,
// in one order on all ranks.
//
// Such a transport starts a whole group and blocks until the group is done. So a rank must hold its
// part of a group before it starts the group. This part has to fit the budget on every rank.
// Groups end where rounds and phases end, because every rank can tell from an id alone to which
// group a bucket belongs.
#ifndef SLUICE_SRC_PLAN_GROUPS_H_
#define SLUICE_SRC_PLAN_GROUPS_H_

#include <cstddef>
#include <cstdint>

#include "plan/bucket.h"
#include "plan/plan.h"

namespace sluice {

// The most buckets of one round, and of one phase of a round, that a rank is a member of; and of
// one channel alone. The most operations that it has in one; and the most bytes of an operation.
struct GroupNeed {
  int64_t round = 0;
  int64_t phase = 0;
  int64_t channel_round = 0;
  int64_t channel_phase = 0;
  int64_t operations_round = 0;
  int64_t operations_phase = 0;
  int64_t operation_bytes = 0;

  friend bool operator==(const GroupNeed&, const GroupNeed&) = default;
};
GroupNeed NeedOf(const Plan& plan);
// The most of each.
GroupNeed Most(const GroupNeed& a, const GroupNeed& b);

// Which buckets of a run and a window make up a group. Equal on all ranks.
struct GroupCut {
  int64_t rounds = 1;   // the number of whole rounds, if phases is 0
  int64_t phases = 1;   // the number of phases of one round; 0: whole rounds
  bool single = false;  // one bucket
};

// How many operations of one rank NCCL takes in one kernel between `ranks` ranks, if an operation
// has at most `operation_bytes`. At least 1. NCCL cuts an operation into parts for several
// channels, and the list of all parts of a kernel has a fixed size. A larger group becomes several
// kernels, and each rank cuts it by its own operations. A send and its receive may then be in
// kernels that wait for each other (github.com/pytorch/pytorch/issues/174288).
int64_t OperationsOfKernel(int ranks, bool one_node, int64_t operation_bytes);

// Bounds a group.
struct GroupLimits {
  int64_t slots = 0;  // equal slots on each rank; 0: no limit
  int max_in_flight = 1;
  int64_t operations = 0;  // of a rank; 0: no limit
};

// The cut for a plan in which no rank needs more than `most`. A group takes half of the slots if it
// can, so that one group is filled while another moves. A group has at most `max_in_flight` buckets
// of a channel, never many rounds, and no more operations than the limit unless it is one bucket.
GroupCut CutFor(const GroupNeed& most, const GroupLimits& limits);

// True if both buckets, of one run, are in one group.
bool InOneGroup(const GroupCut& cut, const BucketId& a, const BucketId& b);

// The end of the group that begins with bucket `begin` of the plan, or earlier.
size_t GroupEnd(const Plan& plan, const GroupCut& cut, size_t begin);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_GROUPS_H_
