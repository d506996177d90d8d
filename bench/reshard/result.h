// The result of a case over all ranks, and of the whole run.
#ifndef SLUICE_BENCH_RESHARD_RESULT_H_
#define SLUICE_BENCH_RESHARD_RESULT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "report/report.h"
#include "reshard/options.h"
#include "reshard/plan_figures.h"
#include "sluice/session.h"
#include "sluice/trace.h"
#include "sluice/transfer.h"
#include "workload/local_tensor.h"

namespace sluice::bench {

// What a rank held at one time.
struct GatePoint {
  int64_t ns = 0;  // since it began its first timed iteration
  int64_t buckets = 0;
  int64_t bytes = 0;  // of staging
};

// What one rank knows after a case, as it travels to rank 0.
struct RankRecord {
  std::vector<int64_t> start_ns;  // of each timed iteration, CLOCK_MONOTONIC
  std::vector<int64_t> end_ns;
  int64_t wrong = 0;
  int64_t peak_target_bytes = 0;     // with --windowed: target memory held at once
  int64_t whole_target_bytes = 0;    // with --windowed: of all its targets
  int64_t grown_bytes = 0;           // of resident memory, in all iterations
  std::string grown_by = "none";     // how that is known: MethodName
  int64_t corruptible_elements = 0;  // that --corrupt could have hit, on all ranks
  std::vector<GatePoint> gate;       // with --trace: of the first timed iteration
  TransferStats stats;
  SessionCounters counters;
  // With --fingerprint: (tensor of the spec, fingerprint), where this rank is in the target mesh.
  std::vector<std::pair<int64_t, Fingerprint>> fingerprints;
};

std::string Encode(const RankRecord& record);
RankRecord Decode(const std::string& text);  // of what Encode returned

// What `log` has of a run that began at `begin_ns`: kGatePointsMax points at most. Where there are
// more, a point has the most of the time until the next one.
inline constexpr size_t kGatePointsMax = 200;
std::vector<GatePoint> GateOf(const TraceLog& log, int64_t begin_ns);

struct TargetRank {
  int rank = -1;
  std::string tensor;  // empty if the case has one tensor
  Fingerprint fingerprint;
};

// By how much resident memory grew in the iterations, warm-up included, beside what it may.
struct MemoryGrowth {
  int64_t growth_bytes = 0;  // of the rank that grew most
  int64_t allowed_bytes = 0;
  int rank = -1;       // the one that grew most
  std::string method;  // how that is known: MethodName
  bool judged = true;  // more than is allowed is a failure

  bool IsTooMuch() const { return judged && growth_bytes > allowed_bytes; }
};

struct CaseResult {
  std::string id;
  std::string plan;  // of Options::plan's names
  bool coalesce = true;
  std::string dtype;  // "mixed" if tensors differ
  int64_t tensors = 0;
  int64_t tensor_bytes = 0;  // of all tensors, each element once, as targets have them
  int64_t payload_bytes = 0;
  int64_t port_bytes = 0;  // that leave the busiest rank, or come to it to stay
  int64_t buckets = 0;
  int64_t channels = 0;
  int64_t bucket_bytes = 0;  // in force: what was given, or what automatic came to
  int max_in_flight = 0;     // likewise
  bool automatic = false;    // at least one of them
  double plan_us = 0;
  double min_us = 0, median_us = 0, p99_us = 0, max_us = 0;
  std::vector<double> iterations_us;  // in their order
  double alg_bw = 0;                  // decimal GB/s at the median
  double bus_bw = 0;                  // the same of port_bytes
  int64_t wrong = 0;
  bool checked = true;
  bool sampled = false;  // only a sample of the elements
  int64_t corruptible_elements = 0;
  int64_t peak_buckets = 0, peak_bytes = 0, peak_ops = 0;
  int64_t limit_buckets = 0, limit_bytes = 0;          // 0: no limit
  int64_t free_peak_buckets = 0, free_peak_bytes = 0;  // planned, without budget
  double wait_share = 0;
  uint64_t plan_hash = 0;
  // With --windowed: on the rank that holds most, target memory and with it staging, beside what
  // the targets come to as a whole on the rank that has most.
  int64_t windowed_target_bytes = 0, windowed_bytes = 0, whole_target_bytes = 0;
  MemoryGrowth memory;
  int gate_rank = -1;  // the one that held most staging, then most buckets; -1: none is recorded
  std::vector<GatePoint> gate;
  std::vector<TargetRank> target_ranks;
  std::vector<BaselineResult> baselines;
};

// What carries a lane's transfers between rank 0 and the others.
struct LaneWires {
  std::string suffix;  // the lane's: of the ids of its results
  SessionReport report;
};

struct RunReport : JobReport {
  std::vector<LaneWires> wires;
  std::vector<std::string> notes;
  int64_t nccl_bytes = 0;  // an estimate of what NCCL takes on each device
  std::vector<CaseResult> results;
  std::vector<PlanFigures> plans;  // instead of results, where nothing is to be moved
};

// "mpi" is what the flags call the fabric's messages. What these are in truth: "tcp", "ucx".
std::string TransportName(const Options& options, const RunReport& report);

// How an iteration is timed: "monotonic" or "barrier"; see IterationTimes.
const char* ClockName(bool one_host);

// Microseconds of each iteration. On one host, from the first rank to start to the last to end, on
// their common monotonic clock. Otherwise what rank 0 saw from barrier to barrier.
std::vector<double> IterationTimes(absl::Span<const RankRecord> records, bool one_host);

// Of `records`, one per rank, of one transfer of `session`.
CaseResult Summarise(const std::string& id, const TransferSpec& spec, const Options& options,
                     const Session& session, bool one_host, absl::Span<const RankRecord> records);

// A baseline of `records` against `ours`, which took `our_times` in the same rounds.
BaselineResult CompareWith(const std::string& name, const std::string& reason,
                           const std::vector<double>& our_times,
                           absl::Span<const RankRecord> records, bool one_host,
                           const CaseResult& ours);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_RESULT_H_
