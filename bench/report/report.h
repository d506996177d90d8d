// What the reports of all benchmark commands have in common.
#ifndef SLUICE_BENCH_REPORT_REPORT_H_
#define SLUICE_BENCH_REPORT_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "job/flag_list.h"
#include "report/columns.h"
#include "report/spread.h"

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
Json TimesJson(const ResultTimes& times);
Json TimesJson(const std::vector<double>& all_us);  // at least one

std::vector<double> Microseconds(std::vector<double> seconds);

// `gb_per_s`: payload in 10^9 bytes, by the median time. 0 where no time was taken.
double GbPerSecond(int64_t payload_bytes, double median_us);

// `errors`: [{case, message}]; the case is empty where the error is not of one.
Json ErrorsJson(const std::vector<JobError>& errors);

// Another way to do the same, with its turns in the same rounds.
struct BaselineResult {
  std::string name;
  std::string reason;   // not empty: why it could not do it; nothing else is set
  double time_us = 0;   // median
  double gb_per_s = 0;  // of our payload
  TimeRatio ratio;      // its time over ours
  int64_t wrong = 0;
  std::vector<double> iterations_us;  // left out of results if empty
};
// One of several runs that differ in their budgets.
struct BudgetRun {
  int64_t limit_buckets = 0;  // 0: no limit
  int64_t peak_buckets = 0;   // of the busiest rank
  int64_t peak_bytes = 0;
  double time_us = 0;
};
// A line for each run: "With a budget of 8 it needs 8 buckets and 45.5 MiB at once, and 1.63 times
// the time." The times are over that of the first run. Nothing of none.
std::string BudgetWords(absl::Span<const BudgetRun> runs);

// `baselines` of a result, null for those with a reason, and `baseline_reasons`. Nothing of none.
void AddBaselines(const std::vector<BaselineResult>& baselines, Json* result);

// `world`, `hosts`, `host_names` and `mpi` of `config`.
void AddJob(const JobReport& report, Json* config);
// How a results file begins: which program wrote it, and with which flags.
Json ResultsHead(Json config);
// A results file, as it is written.
std::string ResultsText(const Json& results);

// The first lines of a table: the command and its version, and with `more` behind it an empty line;
// then "# 4 ranks on 2 hosts: node1,node2; Open MPI ...".
std::string FirstLines(const std::string& command, const std::string& more,
                       const JobReport& report);
// "# transport=tcp iters=3": `first`, and of `given` what differs from `usual`, which has the same
// names; at most kTableWidth characters a line. Nothing of nothing.
inline constexpr size_t kTableWidth = 100;
std::string OptionLines(std::vector<std::string> first, const FlagConfig& given,
                        const FlagConfig& usual);
// `row`, which ends in a newline, with the name of its case behind it, or in a line above where it
// would be longer than kTableWidth.
std::string RowOfCase(const std::string& row, const std::string& name);
// The last lines of a table: "# error: CASE: MESSAGE".
std::string ErrorLines(const JobReport& report);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_REPORT_REPORT_H_
