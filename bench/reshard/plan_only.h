// `sluice-bench reshard --plan-only`: what the plans come to, without moving anything.
#ifndef SLUICE_BENCH_RESHARD_PLAN_ONLY_H_
#define SLUICE_BENCH_RESHARD_PLAN_ONLY_H_

#include "absl/status/status.h"
#include "reshard/options.h"

namespace sluice::bench {

// One process plans for all ranks of each case: as many as the largest rank in it asks for,
// --ranks-per-node of them on a node (0: all). MPI need not be initialised. `flags`: why the
// options could not be read, if so. Returns the exit code.
int RunPlanOnly(const Options& options, const absl::Status& flags);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_PLAN_ONLY_H_
