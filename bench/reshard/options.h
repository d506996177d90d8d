// The flags of `sluice-bench reshard`: their names are an interface.
#ifndef SLUICE_BENCH_RESHARD_OPTIONS_H_
#define SLUICE_BENCH_RESHARD_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "gpu/gpu.h"
#include "job/flag_list.h"
#include "job/flags.h"
#include "job/workload_flags.h"

namespace CLI {
class App;
}

namespace sluice::bench {

struct Options : WorkloadOptions {
  absl::optional<int64_t> bucket_bytes;   // none: automatic
  absl::optional<int64_t> max_in_flight;  // likewise
  int64_t budget_buckets = 16;
  int64_t budget_bytes = -1;  // 0: no limit; -1: automatic
  int ranks_per_node = 0;
  std::string fabric = "auto";  // as AddFabric
  double timeout_s = 30;
  int iterations = 10;
  int warmup = 1;
  Check check = Check::kAll;
  int64_t seed = 0;
  bool fingerprint = false;
  std::string fill;  // hash or plain; empty until ParseTexts: plain with fingerprints, else hash
  bool plan_only = false;
  int64_t corrupt_bytes = 0;
  int64_t grow_bytes = 0;
  std::string json_file;
  std::vector<int64_t> compare_budgets;         // run each case once per entry, interleaved
  std::vector<std::string> compare_transports;  // the same with each of these
  std::string plan = "relay";                   // or naive
  std::vector<std::string> compare_plans;       // the same with each of these
  bool no_coalesce = false;                     // each chunk is a bucket of its own
  std::vector<std::string> compare_coalesce;    // the same with each of on, off
  std::vector<int64_t> compare_bucket_bytes;    // and of these; 0: automatic
  std::vector<int64_t> compare_max_in_flight;   // and of these; 0: automatic
  std::vector<std::string> baselines;           // run each of them as well
  std::string memory = "private";               // or shared
  std::string format = "table";
  bool csv = false;   // becomes the format
  bool wide = false;  // a table with all columns
  int windowed = 0;   // tensors per window, whose targets come late; 0: all targets from the start
  std::string trace_file;
  int64_t trace_events = 16384;  // per rank
  bool progress_thread = false;
  GpuOptions gpu;

  std::string budget_bytes_text = "auto";  // as it was typed

  absl::Duration timeout() const { return absl::Seconds(timeout_s); }
};

// Gives `app` the flags, which write to `options`; `options` must live as long as `app` is used.
void AddFlags(CLI::App* app, Options* options);

// To be called after parsing: what flags come to, and whether they go together. InvalidArgument
// names the flag.
absl::Status ParseTexts(Options* options);

// The plans to run, in turns: those to compare, or the one.
std::vector<std::string> PlansOf(const Options& options);
// Whether chunks join, in turns: what is to be compared, or the one.
std::vector<bool> CoalesceOf(const Options& options);
// Whether a plan of this name passes on what several ranks need.
bool Relays(const std::string& plan);

// Each knob that must be equal on all ranks, by the name it has in results.
std::vector<std::pair<std::string, int64_t>> Knobs(const Options& options);

// Choices beside the knobs that must be equal as well, by the names that they have in results.
FlagConfig Choices(const Options& options);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_OPTIONS_H_
