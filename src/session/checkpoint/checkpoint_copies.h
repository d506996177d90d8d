// The copies of a checkpoint's piece: between its box, a part of it, and a local tensor.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_COPIES_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_COPIES_H_

#include <array>
#include <cstddef>
#include <optional>

#include "device/strided_copy.h"
#include "plan/shard/checkpoint_plan.h"
#include "session/base/views.h"
#include "sluice/tensor.h"
#include "tensor/contiguity.h"

namespace sluice {

// Memory that holds a box, a part, or a whole local tensor.
struct CheckpointSide {
  std::byte* base = nullptr;
  std::array<int64_t, kMaxTensorDims> strides{};  // bytes, from the part's first dimension on
  DType dtype = DType::kU8;
  DeviceKind kind = DeviceKind::kCpu;
};
CheckpointSide BoxSide(const CheckpointPart& part, std::byte* box, DType dtype,
                       DeviceKind kind = DeviceKind::kCpu);
// The elements one after another.
CheckpointSide PackedSide(const CheckpointPart& part, std::byte* packed, DType dtype,
                          DeviceKind kind = DeviceKind::kCpu);
CheckpointSide LocalSide(const CheckpointPart& part, const BoundView& view, DType dtype);

// From or to a box: the other side is a packed part, or a local tensor. Refers to the part.
StridedCopy BoxCopy(const CheckpointPart& part, const CheckpointSide& src,
                    const CheckpointSide& dst);

// Between a packed part and a local tensor. `runs` must live until the copy is made.
using WholeRuns = std::array<Stretch, kMaxTensorDims>;
StridedCopy PartCopy(const CheckpointPart& part, const CheckpointSide& src,
                     const CheckpointSide& dst, WholeRuns* runs);

// The part as it lies in its box, if a message can take it from there or put it there.
std::optional<Rows> RowsInBox(const CheckpointPart& part, CheckpointFlow flow, DType dtype);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_COPIES_H_
