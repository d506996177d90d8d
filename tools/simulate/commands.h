// The commands of sluice-sim.
#ifndef SLUICE_TOOLS_SIMULATE_COMMANDS_H_
#define SLUICE_TOOLS_SIMULATE_COMMANDS_H_

#include <string>

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

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_SIMULATE_COMMANDS_H_
