// Plans a job once and simulates it with each budget, with progress on stderr, until it is done or
// the user has had enough; and how the program ends.
#ifndef SLUICE_TOOLS_SIMULATE_RUN_JOB_H_
#define SLUICE_TOOLS_SIMULATE_RUN_JOB_H_

#include <string>

#include "absl/status/status.h"
#include "sim/job_plans.h"
#include "simulate/options.h"
#include "simulate/result.h"

namespace sluice::bench {

// CTRL-C as a question: a long simulation asks now and then, and ends with what it knows. From its
// making to its end the first SIGINT is only noted; a second one ends the process. One at
// a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool came() const;

 private:
  void (*before_)(int);
};

// Prints a row for each budget on stdout, what it cost on stderr, and appends to the report's
// results. Returns early, and OK, once `interrupt` has come. ResourceExhausted, with the breakdown,
// if the engines would not fit into memory.
absl::Status RunJob(const sim::Job& job, const SimOptions& options, const Interrupt& interrupt,
                    SimReport* report);

// Writes the results file as it stands: until FinishSim or RefuseSim it says that the run has not
// ended. To be called before the first job and after each one.
absl::Status SaveSim(const SimOptions& options, const SimReport& report);

// Says on stderr, and in the results file, what is wrong with the options; the exit status of the
// program.
int RefuseSim(const absl::Status& status, const SimOptions& options, SimReport* report);

// What budgets save and cost, of jobs that were run without one first.
std::string SimWords(const SimReport& report);

// Prints SimWords, writes the files that were asked for, and says on stderr which could not be
// written. The exit status of the program, for runs that ended with `status`.
int FinishSim(const absl::Status& status, const SimOptions& options, const Interrupt& interrupt,
              SimReport* report);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_SIMULATE_RUN_JOB_H_
