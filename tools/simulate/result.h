// What one simulated run came to, and how results are written: a table, CSV and JSON, whose keys
// are an interface.
#ifndef SLUICE_TOOLS_SIMULATE_RESULT_H_
#define SLUICE_TOOLS_SIMULATE_RESULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "report/report.h"
#include "sim/simulation.h"
#include "simulate/options.h"

namespace sluice::bench {

// Times are of the simulation unless they are named seconds: those are the processor's.
struct SimResult {
  std::string family;  // or the name of the case
  int ranks = 0;
  int64_t budget = 0;
  int64_t bucket_bytes = 0;  // in force
  int max_in_flight = 0;     // likewise
  int look_ahead = 0;
  int64_t buckets = 0;
  int64_t payload_bytes = 0;  // that come to stay at ranks which did not own them
  int64_t peak_max = 0;       // buckets held at once, on the busiest rank
  double peak_median = 0;
  double peak_mean = 0;
  int64_t peak_bytes_max = 0;
  int64_t peak_operations_max = 0;
  int64_t channels_max = 0;
  double makespan_us = 0;
  double ratio_to_link_bound = 0;
  std::optional<double> ratio_to_no_budget;
  // Of the ranks' time: how long a bucket waited, after all that could begin had begun.
  double waits_for_budget = 0;
  double waits_for_channel = 0;
  // Of the time that buckets are held.
  double held_by_copies = 0;  // waiting for earlier ones included
  double held_by_partner = 0;
  double held_by_wire = 0;
  bool stalled = false;
  bool stopped = false;  // by the user: what is known so far
  // What it cost to find out.
  double plan_seconds = 0;
  int64_t distinct_plans = 0;
  double plan_bytes_per_rank = 0;
  double simulate_seconds = 0;
};

// What a run of the program has come to by now. Nothing in it is of MPI.
struct SimReport : JobReport {
  Json what;            // the flags that say what is simulated, by name
  std::string running;  // the case that an error would be of; empty: of none
  std::vector<SimResult> results;
};

SimResult Summarize(const sim::SimulationOutcome& outcome);

// Once all results are in: what a budget costs against the run of the same job with none.
void CompareWithNoBudget(std::vector<SimResult>* results);

const Columns<SimResult>& SimColumns();
std::string SimTableHeader(const SimOptions& options);
std::string SimTableRow(const SimResult& result);
std::string SimCsv(const SimOptions& options, absl::Span<const SimResult> results);
std::string SimJson(const SimOptions& options, const SimReport& report);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_SIMULATE_RESULT_H_
