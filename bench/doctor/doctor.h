// `sluice-bench doctor`: what makes this job slower than it could be, and what to do.
#ifndef SLUICE_BENCH_DOCTOR_DOCTOR_H_
#define SLUICE_BENCH_DOCTOR_DOCTOR_H_

#include "absl/status/status.h"
#include "doctor/options.h"

namespace sluice::bench {

// Collective over MPI_COMM_WORLD, after MPI_Init. `flags` says whether they could be read. Returns
// what main returns, or ends the job.
int RunDoctor(const DoctorOptions& options, const absl::Status& flags);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_DOCTOR_DOCTOR_H_
