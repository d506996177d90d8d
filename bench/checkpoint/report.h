// What comes of saves and loads over all ranks: as rows of a table, and as JSON.
#ifndef SLUICE_BENCH_CHECKPOINT_REPORT_H_
#define SLUICE_BENCH_CHECKPOINT_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "checkpoint/options.h"
#include "job/job_report.h"
#include "sluice/checkpoint.h"

namespace sluice::bench {

// One rank's part of one call; travels as bytes between ranks.
struct CheckpointRecord {
  CheckpointStats stats;
  int64_t wrong = 0;
};

// Sums over the ranks, but for times, peaks and limits: the largest of any rank.
struct CheckpointResult {
  std::string mode;                  // "save" or "load"
  std::vector<double> seconds = {};  // of each iteration
  CheckpointStats stats = {};        // of the last one
  int64_t wrong = 0;                 // of all
};

void AddIteration(absl::Span<const CheckpointRecord> records, CheckpointResult* result);

struct CheckpointReport : JobReport {
  std::vector<CheckpointResult> results;
};

std::string TableHeader(const CheckpointBenchOptions& options, const CheckpointReport& report);
std::string TableRow(const CheckpointResult& result);
std::string JsonText(const CheckpointBenchOptions& options, const CheckpointReport& report);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_REPORT_H_
