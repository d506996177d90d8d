// The `reshard` subcommand as a whole.
#ifndef SLUICE_BENCH_RESHARD_RESHARD_H_
#define SLUICE_BENCH_RESHARD_RESHARD_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/job.h"
#include "reshard/options.h"

namespace sluice::bench {

// Runs what `options` say on this rank of `job`, unless `flags` already holds an error; the other
// ranks learn of that. The job has been left on return. Returns the exit code. After an error that
// leaves ranks apart it does not return but ends the job.
int RunReshard(absl::StatusOr<std::unique_ptr<Job>> job, const Options& options,
               const absl::Status& flags);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_RESHARD_H_
