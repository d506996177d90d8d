// Families of jobs: the same kind of redistribution over meshes of any size, to see how peaks and
// times grow. Made of transfers as a user would describe them.
#ifndef SLUICE_SRC_SIM_FAMILIES_H_
#define SLUICE_SRC_SIM_FAMILIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sim/job_plans.h"

namespace sluice::sim {

struct FamilyOptions {
  int ranks = 16;
  int peers = 256;                        // of peers
  int64_t pair_bytes = int64_t{8} << 20;  // on the wire, of all-to-all and peers: per pair
  int ranks_per_node = 8;
  int64_t bucket_bytes = int64_t{8} << 20;  // 0: automatic
  int max_in_flight = 2;                    // likewise
};

// A member of the family:
//   `all-to-all`   A matrix cut by rows over all ranks, to be cut by columns over the same ranks.
//                  Each rank sends to each other one, and packs what it sends.
//   `peers`        Rank r sends to r + 1, .., r + peers (modulo ranks; all others if there are no
//                  more). There are `peers` tensors, each moved on by one rank more, f32 to bf16.
//   `fsdp-tp`      One layer of Llama-3-70B in bf16. Half of the ranks have it as (replicas, fsdp
//                  up to 64, tp up to 8). It goes to the other half as (replicas, tp up to 8).
//   `pp-ep-tp-dp`  One mixture-of-experts layer of Qwen3-235B in bf16 per pipeline stage. Half of
//                  the ranks are up to 8 stages of (replicas, ep up to 16), with attention tp up to
//                  4 in each. It goes to the other half as (replicas, tp up to 8). There the
//                  experts are cut up to 32 ways.
// NotFound lists the names. InvalidArgument says what numbers of ranks the family has.
absl::StatusOr<Job> MakeFamily(absl::string_view name, const FamilyOptions& options);
// The error that MakeFamily would give, without making anything.
absl::Status CheckFamily(absl::string_view name, const FamilyOptions& options);
std::vector<std::string> FamilyNames();

}  // namespace sluice::sim

#endif  // SLUICE_SRC_SIM_FAMILIES_H_
