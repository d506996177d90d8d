// What the reports of all benchmark commands have in common.
#ifndef SLUICE_BENCH_JOB_JOB_REPORT_H_
#define SLUICE_BENCH_JOB_JOB_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sluice::bench {

struct JobError {
  std::string id;  // empty: not of one case
  std::string message;
};

struct JobReport {
  std::string mpi;
  int world = 0;
  std::vector<std::string> hosts;
  std::vector<JobError> errors;
  bool finished = false;

  // Until the run is finished they say that it has not ended, so that a results file that a killed
  // run has left cannot be taken for a good one.
  std::vector<JobError> ErrorsSoFar() const;
};

// How a results file begins: which program wrote it, and with which flags.
nlohmann::ordered_json ResultsHead(nlohmann::ordered_json config);
// A results file, as it is written.
std::string ResultsText(const nlohmann::ordered_json& results);

// The last lines of a table: "# error: CASE: MESSAGE".
std::string ErrorLines(const JobReport& report);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_JOB_REPORT_H_
