// Computes from a checkpoint's budget how many slots there are, and of what size.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_LIMITS_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/shard/checkpoint_plan.h"
#include "sluice/checkpoint.h"

namespace sluice {

// InvalidArgument names the option.
absl::Status CheckCheckpointOptions(const CheckpointOptions& options);

struct CheckpointLimits {
  int slots = 1;
  int64_t block_bytes = 0;  // a piece, as storage reads it, or with its packed parts behind it
};

// InvalidArgument where the budget does not hold one block: names the floor, and what it is made
// of. `alignment` is the source's.
absl::StatusOr<CheckpointLimits> ResolveCheckpointLimits(const CheckpointOptions& options,
                                                         const CheckpointPlan& plan,
                                                         int64_t alignment);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_LIMITS_H_
