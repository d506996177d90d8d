// What must hold of the plans of all ranks. Each check says in words what does not.
#ifndef SLUICE_TESTS_PLAN_CHECKS_H_
#define SLUICE_TESTS_PLAN_CHECKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "plan/job.h"
#include "plan/plan.h"

namespace sluice::oracle {

// Not OK if ids do not ascend, if a member does not know its bucket, or if a bucket's id does not
// name its ends. Not OK if two members of a bucket differ in its bytes, members, parents, roles,
// contributions, levels or chunks. `plans` by rank.
absl::Status CheckAgreement(const std::vector<Plan>& plans);

// Not OK if
// * a plan has two channels of equal content, one without buckets, or one that miscounts its
//   buckets;
// * a channel is not a tree. First a source, an owner or a local copy, then destinations, each
//   after its parent, then contributors that need nothing;
// * a destination does not get the bytes from the first of its node. The first of the root's node,
//   if there is one, is the root;
// * these firsts are no star, chain or binary tree;
// * the contributions of a reduction are not as many as its levels ask for, one of each contributor
//   and one of the owner;
// * the two ends of a link do not both know it, or disagree on its tag;
// * two links from one rank to another have one tag.
absl::Status CheckChannels(const Job& job, const std::vector<Plan>& plans);

// What one party carries of one tensor is small, large or in between. Small: it fits a bucket and
// has less than 256 KiB. Large: it fits no bucket, or no piece of its pipeline. A reduction counts
// contributions, of which a bucket has room for as many bytes as ReductionAreaBytes says. Not OK if
// * a bucket's slot is larger than bucket_bytes, or its areas do not hold what goes there;
// * two neighbouring buckets of small parts would fit in one; where the job does not join: a bucket
//   has several chunks;
// * a large part has more pieces than it needs, or unequal ones but for the last, or is not alone;
// * a part that several ranks need takes another tree than ChooseFanout says.
absl::Status CheckBucketSizes(const Job& job, const std::vector<Plan>& plans);

// Bytes that one rank really moved.
struct Moved {
  int64_t sent = 0;         // contributions and relays included
  int64_t received = 0;     // to stay
  int64_t local = 0;        // copied within the rank
  int64_t contributed = 0;  // contributions of others that came to be added
};

// Moves every bucket, in id order, down its tree, through wires of its size. Not OK if
// * a target rank does not end with exactly the elements it should own, each written once;
// * an element under Partial placements is not reduced from one contribution of each kind in the
//   right order;
// * anything is written or read out of bounds, or a byte of a wire is written twice or never;
// * an element comes from a rank although the target rank itself, or else a rank of its node, has
//   it;
// * an element is reduced elsewhere although the target rank holds a contribution to it and the
//   owner does not need it. This is allowed where sums may cross in place of contributions.
absl::Status Deliver(const Job& job, const std::vector<Plan>& plans, std::vector<Moved>* moved);

// Not OK if a rank's bytes are not what it moved. Not OK if its peaks are not the sums over its
// channels of the max_in_flight largest buckets. Staging is counted anew. A local copy takes none,
// and an owner the whole slot. Any other member takes the larger of what the rank sends of its own
// and what it gets. One chunk that is consecutive in its dense tensor, in the dtype that crosses,
// takes none of this.
absl::Status CheckStats(const Job& job, const std::vector<Plan>& plans,
                        const std::vector<Moved>& moved);

// Not OK if the plans differ in any way.
absl::Status CheckSame(const Plan& a, const Plan& b);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_CHECKS_H_
