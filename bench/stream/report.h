// What a run leaves behind: a table, a results file, a closing line.
#ifndef SLUICE_BENCH_STREAM_REPORT_H_
#define SLUICE_BENCH_STREAM_REPORT_H_

#include <string>
#include <vector>

#include "stream/options.h"
#include "stream/outcome.h"

namespace sluice::bench {

struct StreamReport {
  int world = 0;
  std::vector<std::string> hosts;
  std::string mpi;
  std::vector<Result> results;  // sluice first
  std::vector<std::string> errors;
  bool finished = false;

  // All that was delivered was right, and nothing failed.
  bool ok() const;
};

// The results file. Its keys are an interface.
std::string StreamJsonText(const StreamBenchOptions& options, const StreamReport& report);

// What is run, and the head of the table.
std::string StreamTableHeader(const StreamBenchOptions& options, const StreamReport& report);
// A line for each mode.
std::string StreamTableRow(const Result& result);
// Errors, and the result in words.
std::string StreamTableFooter(const StreamReport& report);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_REPORT_H_
