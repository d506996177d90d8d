// Plans a job once and simulates it with each budget, with progress on stderr, until it is done or
// the user has had enough.
#ifndef SLUICE_BENCH_SIMULATE_RUN_JOB_H_
#define SLUICE_BENCH_SIMULATE_RUN_JOB_H_

#include <vector>

#include "absl/status/status.h"
#include "sim/job_plans.h"
#include "simulate/interrupt.h"
#include "simulate/options.h"
#include "simulate/result.h"

namespace sluice::bench {

// Prints a row for each budget on stdout, what it cost on stderr, and appends to `results`.
// Returns early, and OK, once `interrupt` has come. ResourceExhausted, with the breakdown, if the
// engines would not fit into memory.
absl::Status RunJob(const sim::Job& job, const SimOptions& options, const Interrupt& interrupt,
                    std::vector<SimResult>* results);

// Says on stderr what is wrong with the options; the exit status of the program.
int RefuseSim(const absl::Status& status);

// Writes the files that were asked for, and says on stderr which could not be written. The exit
// status of the program, for runs that ended with `status`.
int FinishSim(const absl::Status& status, const SimOptions& options, const Interrupt& interrupt,
              const std::vector<SimResult>& results);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SIMULATE_RUN_JOB_H_
