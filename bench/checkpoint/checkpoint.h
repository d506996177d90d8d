// The subcommand `sluice-bench checkpoint`.
#ifndef SLUICE_BENCH_CHECKPOINT_CHECKPOINT_H_
#define SLUICE_BENCH_CHECKPOINT_CHECKPOINT_H_

#include "absl/status/status.h"
#include "checkpoint/options.h"

namespace sluice::bench {

// Runs it on all ranks, after MPI_Init; `flags` says whether the flags could be read. Finalises MPI
// and returns the exit code: 0 if everything was as it should be.
int RunCheckpoint(const CheckpointBenchOptions& options, const absl::Status& flags);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_CHECKPOINT_H_
