// What a run leaves behind: a table, a results file, a closing line.
#ifndef SLUICE_BENCH_STREAM_REPORT_H_
#define SLUICE_BENCH_STREAM_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/trace_file.h"
#include "report/report.h"
#include "stream/options.h"
#include "stream/outcome.h"

namespace sluice::bench {

struct StreamReport : JobReport {
  std::vector<Result> results;  // sluice first
  TraceFileFacts trace;         // of the file that was written

  // All that was delivered was right, and nothing failed.
  bool ok() const;
};

// The speed-up that overlapping a generator with its consumer has over making and consuming one
// item after the other. `world`: the ranks. --generate-ms and --consume-us say the times; 0 without
// them.
double SpeedUp(const StreamBenchOptions& options, int world, const Result& result);
// The most that the order and the threads allow.
double SpeedUpIdeal(const StreamBenchOptions& options, int world);

// What the resident memory of a rank may grow by: the budget, device buffers that are on the host,
// and kMemoryBesideStaging. Nothing where nothing is promised: of plain loaders, and beside a GPU.
std::optional<int64_t> AllowedGrowth(const StreamBenchOptions& options, const Result& result);
// An error for each result whose memory has grown by more; empty: none.
std::vector<std::string> GrowthErrors(const StreamBenchOptions& options,
                                      const std::vector<Result>& results);

// What each row has.
Columns<Result> StreamColumns(const StreamBenchOptions& options);

// The results file. Its keys are an interface.
std::string StreamJsonText(const StreamBenchOptions& options, const StreamReport& report);

// What is run, and the head of the table.
std::string StreamTableHeader(const StreamBenchOptions& options, const StreamReport& report);
// A line for each mode.
std::string StreamTableRow(const StreamBenchOptions& options, const Result& result);
// Errors, and the result in words.
std::string StreamTableFooter(const StreamBenchOptions& options, const StreamReport& report);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_REPORT_H_
