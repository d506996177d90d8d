// The commands of sluice-sim.
#ifndef SLUICE_TOOLS_SIMULATE_COMMANDS_H_
#define SLUICE_TOOLS_SIMULATE_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/workload_flags.h"
#include "sim/families.h"
#include "simulate/options.h"

namespace sluice::bench {

// peak: one job, or several, with several budgets.
struct PeakOptions {
  WorkloadOptions workload;
  SimOptions sim;
};
void AddPeakFlags(CLI::App* app, PeakOptions* options);
// The exit status of the program.
int RunPeak(PeakOptions* options);

// scale: a family of jobs over meshes of growing size.
struct ScaleOptions {
  std::string family = "all-to-all";
  std::string ranks_text = "16:256:4";
  std::string pair_bytes_text = "8M";
  sim::FamilyOptions of;
  SimOptions sim;
};
void AddScaleFlags(CLI::App* app, ScaleOptions* options);
int RunScale(ScaleOptions* options);

// Reads "16:65536:4" (from, to, factor: 16, 64, ..) or "16,100,256". InvalidArgument quotes it.
absl::StatusOr<std::vector<int>> ParseRankCounts(absl::string_view text);

// deadlock: random jobs under a rule of admission, and how many of them stall. The flags as they
// were typed: their names are an interface.
struct DeadlockOptions {
  absl::Status flags;  // why they could not be parsed
  std::string rule = "escape";
  std::string switch_off;  // a premise's name; empty for none
  int64_t runs = 1000;
  uint64_t seed = 0;
  int64_t first = 0;
  int ranks_max = 8;
  std::string json_file;
  std::string script_file;
  bool progress = false;
};

// Adds the command to `app` and gives it back; `options` must live as long as `app` is used.
CLI::App* AddDeadlockCommand(CLI::App& app, DeadlockOptions* options);

// Prints a table and the smallest stalled run. Returns the exit code. Options that make no sense
// give 2. A file that cannot be written gives 1. The engine's rule gives 1 too, if it stalls with
// all its premises on. CTRL-C gives 130, and ends the search with what is known by then.
int RunDeadlock(const DeadlockOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_SIMULATE_COMMANDS_H_
