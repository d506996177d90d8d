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
  int64_t sent = 0;
  int64_t received = 0;
  int64_t local = 0;
};

// Moves every bucket, in id order, through buffers of its size, with one label per byte. Not OK if
// a target rank's tensor does not end with exactly the elements it should own, each written once;
// if anything is written or read out of bounds, or a byte of a bucket is written twice or never; or
// if an element comes from a rank although the target rank itself, or else a rank of its node, has
// it.
absl::Status Deliver(const Job& job, const std::vector<Plan>& plans, std::vector<Moved>* moved);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_DELIVERY_H_
