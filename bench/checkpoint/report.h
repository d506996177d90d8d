// Results of saves and loads, as rows of a table and as JSON; its keys are an interface.
#ifndef SLUICE_BENCH_CHECKPOINT_REPORT_H_
#define SLUICE_BENCH_CHECKPOINT_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "checkpoint/options.h"
#include "report/report.h"
#include "report/spread.h"
#include "sluice/checkpoint.h"

namespace sluice::bench {

// One rank's part of one call; travels as bytes between ranks.
struct CheckpointRecord {
  CheckpointStats stats;  // of another way to load: the time alone
  int64_t wrong = 0;
};

// Sums over the ranks, but for times, peaks and limits: the largest of any rank.
struct CheckpointResult {
  std::string mode;                  // "save" or "load", or another way to load
  bool checked = false;              // whether elements were compared,
  bool sampled = false;              // and then only some of them
  std::vector<double> seconds = {};  // of each iteration: the longest of any rank
  CheckpointStats stats = {};        // of the last one
  int64_t wrong = 0;                 // of all, warm-up included
  // Other ways to load, with their turns in each iteration.
  std::vector<CheckpointResult> others = {};
  // Of another way: why it could not load this, if it could not; and its times over ours. Its stats
  // have nothing but what was loaded.
  bool is_other = false;
  std::string reason = {};
  TimeRatio ratio = {};
};

// `timed`: no warm-up.
void AddIteration(absl::Span<const CheckpointRecord> records, bool timed, CheckpointResult* result);

struct CheckpointReport : JobReport {
  std::vector<CheckpointResult> results;
};

std::string TableHeader(const CheckpointBenchOptions& options, const CheckpointReport& report);
// One row, and one for each other way.
std::string TableRows(const CheckpointResult& result);
std::string JsonText(const CheckpointBenchOptions& options, const CheckpointReport& report);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_REPORT_H_
