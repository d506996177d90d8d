// sluice-sim: what a budget bounds and costs on meshes of any size, by simulation. No MPI.
#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "simulate/commands.h"
#include "simulate/deadlock.h"
#include "simulate/exit_codes.h"

int main(int argc, char** argv) {
  sluice::bench::PeakOptions peak_options;
  sluice::bench::ScaleOptions scale_options;
  CLI::App app(
      "Runs the plans and engines of real jobs in simulated time: how much is alive at once, and "
      "what a budget costs.");
  app.set_version_flag("--version", absl::StrCat("sluice-sim ", SLUICE_VERSION));
  app.require_subcommand(1);
  CLI::App* peak = app.add_subcommand("peak", "given transfers, with several budgets");
  sluice::bench::AddPeakFlags(peak, &peak_options);
  CLI::App* scale = app.add_subcommand("scale", "a family of transfers over growing meshes");
  sluice::bench::AddScaleFlags(scale, &scale_options);
  sluice::bench::DeadlockOptions deadlock_options;
  const CLI::App* deadlock = sluice::bench::AddDeadlockCommand(app, &deadlock_options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : sluice::bench::kBadOptionsExit;
  }
  if (peak->parsed()) return sluice::bench::RunPeak(&peak_options);
  if (deadlock->parsed()) return sluice::bench::RunDeadlock(deadlock_options);
  return sluice::bench::RunScale(&scale_options);
}
