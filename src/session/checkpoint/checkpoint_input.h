// The input of a checkpoint call, checked and in the terms of those who carry it out.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_INPUT_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_INPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "plan/plan.h"
#include "plan/shard/checkpoint_plan.h"
#include "session/base/views.h"
#include "sluice/checkpoint.h"

namespace sluice {

inline DType FileDTypeOf(const CheckpointTensor& tensor) {
  return tensor.file_dtype ? *tensor.file_dtype : tensor.dtype;
}

// As layouts and views have it.
inline std::vector<int64_t> LaidOutShape(const CheckpointTensor& tensor) {
  return tensor.shape.empty() ? std::vector<int64_t>{1} : tensor.shape;
}

// One rank's input, and what of it must be equal on all ranks.
struct CheckpointInput {
  absl::Status status;
  std::vector<BoundView> views;                   // one per tensor; of one with boxes, an empty one
  std::vector<std::vector<BoundView>> box_views;  // one per tensor: of its boxes
  PlanHash tensors;
  uint64_t call = 0;  // of the place and the options
};
CheckpointInput LookAtInput(CheckpointFlow flow, absl::Span<const CheckpointTensor> tensors,
                            const std::string& place, const CheckpointOptions& options,
                            const MemoryRules& rules, int rank, int job_ranks);
// Puts the views of `arrays` in the place of those in `input`. Arrays are slices of tensors that
// LookAtInput has found good, and have no element in common.
absl::Status BindArrays(absl::Span<const CheckpointTensor> arrays, const MemoryRules& rules,
                        int rank, CheckpointInput* input);
// The same as LookAtInput, of a call without tensors.
CheckpointInput LookAtPlace(const std::string& place, const CheckpointOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_INPUT_H_
