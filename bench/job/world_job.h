// Jobs without MPI: a world of processes that meet at a store, and one process alone.
#ifndef SLUICE_BENCH_JOB_WORLD_JOB_H_
#define SLUICE_BENCH_JOB_WORLD_JOB_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/job.h"

namespace sluice::bench {

// Collective over the world that the environment names. Waits up to `timeout`, or as long as
// SLUICE_WORLD_TIMEOUT says, for the store, and then for the other ranks. Errors as World::Join and
// World::MakeFabric.
absl::StatusOr<std::unique_ptr<Job>> JoinWorldJob(absl::Duration timeout);

std::unique_ptr<Job> MakeJobAlone();

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_WORLD_JOB_H_
