// A transfer with all that planning needs, for tests: made at random from a seed, or by hand.
#ifndef SLUICE_TESTS_PLAN_JOB_H_
#define SLUICE_TESTS_PLAN_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "oracle/make_layout.h"
#include "plan/plan.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"

namespace sluice::oracle {

struct Job {
  TransferSpec spec;
  std::vector<int> node_of_rank;
  int64_t bucket_bytes = int64_t{8} << 20;
  int max_in_flight = 2;
  int64_t slots = 0;
  bool relay = true;
  bool coalesce = true;

  int ranks() const { return static_cast<int>(node_of_rank.size()); }
  PlanOptions options() const {
    return {bucket_bytes, max_in_flight, node_of_rank, slots, relay, coalesce};
  }
};

// 1 to 4 tensors of at most a few thousand elements over at most 12 ranks, with replicas, Partial
// sources, casts and windows among them.
Job RandomJob(uint64_t seed);

// 1 or 2 tensors of up to half a megabyte over at most 12 ranks, with many replicas. What one
// target needs is large enough to be cut between senders, and passed on down trees.
Job RandomLargeJob(uint64_t seed);

// Tensors that are mostly reduced, from ranks in order over several nodes of up to four.
Job RandomReductionJob(uint64_t seed);

// Every rank's plan, by rank.
absl::StatusOr<std::vector<Plan>> PlanAllRanks(const Job& job);
// Those of a job that can be planned.
std::vector<Plan> Plans(const Job& job);

// The whole job in words, for traces.
std::string Describe(const Job& job);

// For jobs by hand.
TensorTransfer MakeTensor(std::string name, std::vector<int64_t> shape, DType dtype, Layout src,
                          Layout dst);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_JOB_H_
