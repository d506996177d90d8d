// The job of a benchmark, as the flag --fabric and the environment say.
#ifndef SLUICE_BENCH_JOB_JOB_H_
#define SLUICE_BENCH_JOB_JOB_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sluice/job.h"

namespace sluice::bench {

// `fabric` is the value of --fabric: auto, mpi or world. A process alone has MPI where MPI is built
// in, as reports name MPI. `all_threads` and `timeout` are as JobOptions has them. Collective.
// InvalidArgument: flags or the environment are bad, or ask for what is not built in.
absl::StatusOr<std::unique_ptr<Job>> StartJob(const std::string& fabric, bool all_threads,
                                              absl::Duration timeout);

// The name and version of the MPI library, as reports give it; "no MPI".
std::string MpiVersion();

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_JOB_H_
