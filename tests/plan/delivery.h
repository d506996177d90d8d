// Carries out all ranks' plans element by element and checks what arrives.
#ifndef SLUICE_TESTS_PLAN_DELIVERY_H_
#define SLUICE_TESTS_PLAN_DELIVERY_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "plan/job.h"
#include "plan/plan.h"

namespace sluice::oracle {

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

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_DELIVERY_H_
