// The `reshard` subcommand as a whole.
#ifndef SLUICE_BENCH_RESHARD_RESHARD_H_
#define SLUICE_BENCH_RESHARD_RESHARD_H_

#include "absl/status/status.h"
#include "reshard/options.h"

namespace sluice::bench {

// Runs what `options` say on this rank of MPI_COMM_WORLD, unless `flags` already holds an error;
// the other ranks learn of that. MPI must be initialised, and is finalised on return. Returns the
// exit code. After an error that leaves ranks apart it does not return but ends the job.
int RunReshard(const Options& options, const absl::Status& flags);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_RESHARD_H_
