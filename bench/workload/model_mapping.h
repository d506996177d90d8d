// Where the tensors of a model lie on a trainer's and on a generator's ranks.
//
// A pipeline stage has n = num_gpus / pp ranks. Dense tensors lie on the mesh
// (n / (fsdp * tp), fsdp, tp), stacked experts on (n / ep, ep); the first dimension replicates.
// Where ep is 1, stacked experts lie as their 2-D weight does, one tensor dimension further right.
#ifndef SLUICE_BENCH_WORKLOAD_MODEL_MAPPING_H_
#define SLUICE_BENCH_WORKLOAD_MODEL_MAPPING_H_

#include "absl/status/statusor.h"
#include "sluice/transfer.h"
#include "workload/model_file.h"
#include "workload/system_file.h"

namespace sluice::bench {

// What tensor parallelism does to the 2-D weight of a tensor.
enum class TensorParallel { kReplicate, kColumn, kRow };

// By the name alone: "...q_proj.weight" is kColumn, "...down_proj.weight" kRow,
// "...mlp.gate.weight" and all biases kReplicate.
TensorParallel TensorParallelOf(const ModelTensor& tensor);

// The layout of `tensor` of `model` on the ranks that begin at `first_rank`.
absl::StatusOr<Layout> LayoutOf(const ModelTensor& tensor, const Model& model,
                                const Parallelism& side, int first_rank);

// One transfer of all tensors, trainer to generation.
absl::StatusOr<TransferSpec> MapModel(const Model& model, const System& system);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_MODEL_MAPPING_H_
