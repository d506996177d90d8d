// Whether channels are what their members can work with, and links meet.
#ifndef SLUICE_TESTS_PLAN_CHANNEL_CHECK_H_
#define SLUICE_TESTS_PLAN_CHANNEL_CHECK_H_

#include <vector>

#include "absl/status/status.h"
#include "plan/job.h"
#include "plan/plan.h"

namespace sluice::oracle {

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

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_CHANNEL_CHECK_H_
