// Places a bucket's bytes on this rank: in tensors, in its slot, or the same in both.
#ifndef SLUICE_SRC_SESSION_TRANSFER_BUCKET_SIDES_H_
#define SLUICE_SRC_SESSION_TRANSFER_BUCKET_SIDES_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "device/strided_copy.h"
#include "engine/stage.h"
#include "plan/plan.h"
#include "session/transfer/transfer_run.h"

namespace sluice {

absl::Span<const Chunk> ChunksOf(const Plan& plan, const Bucket& bucket);
const TensorTransfer& TensorAt(const TransferRun& run, const Chunk& chunk);
// True if the chunk, of a destination here, has nowhere to go to: its run was cancelled while it
// waited for the tensor's memory. Others of its bucket may have.
bool IsDropped(const TransferRun& run, const Chunk& chunk);

// A bucket's bytes in memory, in the order in which they cross.
struct WireMemory {
  std::byte* data = nullptr;
  int64_t row_bytes = 0;  // 0: one stretch
  int64_t stride_bytes = 0;
  DeviceKind kind = DeviceKind::kCpu;  // of tensor memory

  bool one_stretch() const { return data != nullptr && row_bytes == 0; }
};

// This rank's part of each stage, and the staging that it takes.
struct BucketPart {
  bool drops = false;  // nothing that it gets as a destination has anywhere to go
  WireMemory src;      // in source memory, if they can be sent from there; or null
  WireMemory dst;      // in destination memory, if they can be received there; or null
  bool folds = false;  // an owner that receives all contributions at once, as their sum
  StageSet stages = 0;
  int64_t staging_bytes = 0;
};
BucketPart PartOf(const TransferRun& run, const Bucket& bucket);

// Copies of a chunk: into the bucket; into a contribution; out of the bucket; and where source and
// destination are on one rank. The bucket's bytes begin at `wire`.
StridedCopy PackCopy(const TransferRun& run, const Chunk& chunk, std::byte* wire);
StridedCopy ContributionCopy(const TransferRun& run, const Chunk& chunk, std::byte* wire);
StridedCopy UnpackCopy(const TransferRun& run, const Chunk& chunk, const std::byte* wire);
StridedCopy LocalCopy(const TransferRun& run, const Chunk& chunk);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_BUCKET_SIDES_H_
