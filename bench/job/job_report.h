// What the reports of all benchmark commands have in common.
#ifndef SLUICE_BENCH_JOB_JOB_REPORT_H_
#define SLUICE_BENCH_JOB_JOB_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
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

// ---- What every results file has; docs/results.md tells it to readers.
//
// At the top: `version`, `built_with`, `config` (numbers as numbers), `results`, `errors`. Of each
// result: `case`, `time_us`, `gb_per_s`. What a command has beside them are keys of its own.

// Microseconds of what was repeated.
struct ResultTimes {
  double min = 0;
  double median = 0;
  double max = 0;
  std::optional<double> p99 = std::nullopt;
};
// `time_us`: {min, median, p99, max}; without p99 where there is none.
nlohmann::ordered_json TimesJson(const ResultTimes& times);

// `gb_per_s`: payload in 10^9 bytes, by the median time. 0 where no time was taken.
double GbPerSecond(int64_t payload_bytes, double median_us);

// `errors`: [{case, message}]; the case is empty where the error is not of one.
nlohmann::ordered_json ErrorsJson(const std::vector<JobError>& errors);

// How a results file begins: which program wrote it, and with which flags.
nlohmann::ordered_json ResultsHead(nlohmann::ordered_json config);
// A results file, as it is written.
std::string ResultsText(const nlohmann::ordered_json& results);

// The last lines of a table: "# error: CASE: MESSAGE".
std::string ErrorLines(const JobReport& report);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_JOB_REPORT_H_
