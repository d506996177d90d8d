// The subcommand `sluice-bench checkpoint`.
#ifndef SLUICE_BENCH_CHECKPOINT_CHECKPOINT_H_
#define SLUICE_BENCH_CHECKPOINT_CHECKPOINT_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/options.h"
#include "job/job.h"

namespace sluice::bench {

// Runs it on all ranks of `job`; `flags` says whether the flags could be read. Leaves the job and
// returns the exit code: 0 if everything was as it should be.
int RunCheckpoint(absl::StatusOr<std::unique_ptr<Job>> job, const CheckpointBenchOptions& options,
                  const absl::Status& flags);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_CHECKPOINT_H_
