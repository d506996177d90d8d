// The chunks of a redistribution as the baselines see them: one region of one tensor that one
// source rank has and one target rank needs. Enumerated in the same order on all ranks.
#ifndef SLUICE_BENCH_RESHARD_BASELINES_CHUNKS_H_
#define SLUICE_BENCH_RESHARD_BASELINES_CHUNKS_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "reshard/baselines/block.h"
#include "sluice/transfer.h"
#include "workload/reduce.h"

namespace sluice::bench {

struct Chunk {
  size_t tensor;
  int src;
  int dst;
  // Under a Partial source, the chunks of one region are its contributions, one after the other.
  size_t contribution;
  const SourceGroups* groups;  // of the tensor
  const SharedBlock* block;
};

// A target that has the elements itself is its own source; the others take turns over the ranks
// that hold them.
void ForEachChunk(const TransferSpec& spec, absl::FunctionRef<void(const Chunk&)> visit);

// What the chunks of `tensor` travel as: contributions as they are, else the smaller dtype.
DType WireDType(const TensorTransfer& tensor);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_BASELINES_CHUNKS_H_
