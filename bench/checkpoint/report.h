// Results of saves and loads, as rows of a table and as JSON; its keys are an interface.
#ifndef SLUICE_BENCH_CHECKPOINT_REPORT_H_
#define SLUICE_BENCH_CHECKPOINT_REPORT_H_

#include <string>
#include <vector>

#include "checkpoint/options.h"
#include "checkpoint/result.h"
#include "report/report.h"

namespace sluice::bench {

struct CheckpointReport : JobReport {
  std::vector<CheckpointResult> results;
};

std::string TableHeader(const CheckpointBenchOptions& options, const CheckpointReport& report);
// One row, and one for each other way.
std::string TableRows(const CheckpointResult& result);
std::string JsonText(const CheckpointBenchOptions& options, const CheckpointReport& report);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_REPORT_H_
