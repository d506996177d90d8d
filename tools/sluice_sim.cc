// sluice-sim: what a budget bounds and costs on meshes of any size, by simulation. No MPI.
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "job/exit_codes.h"
#include "job/flags.h"
#include "job/help.h"
#include "simulate/commands.h"

int main(int argc, char** argv) {
  sluice::bench::PeakOptions peak_options;
  sluice::bench::ScaleOptions scale_options;
  CLI::App app(
      "Runs the plans and engines of real jobs in simulated time: how much is alive at once, and "
      "what a budget costs.",
      "sluice-sim");
  app.set_version_flag("--version", absl::StrCat("sluice-sim ", SLUICE_VERSION));
  app.require_subcommand(1);
  CLI::App* peak = app.add_subcommand("peak", "given transfers, with several budgets");
  sluice::bench::AddPeakFlags(peak, &peak_options);
  CLI::App* scale = app.add_subcommand("scale", "a family of transfers over growing meshes");
  sluice::bench::AddScaleFlags(scale, &scale_options);
  sluice::bench::DeadlockOptions deadlock_options;
  const CLI::App* deadlock = sluice::bench::AddDeadlockCommand(app, &deadlock_options);
  sluice::bench::SetHelp(&app, "build/bin/sluice-sim peak --preset etha-3-no_partial",
                         "sluice-sim COMMAND --help says more of each, and has an example.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0 && sluice::bench::NamesNoCommand(app)) {
      std::cerr << sluice::bench::NoCommandText(app, argc, argv);
      return sluice::bench::kBadUsageExit;
    }
    if (error.get_exit_code() == 0) return app.exit(error);
    const absl::Status flags = sluice::bench::FlagsStatus(app, error);
    const std::string json_file = sluice::bench::FindJsonFile(argc, argv);
    for (sluice::bench::SimOptions* options : {&peak_options.sim, &scale_options.sim}) {
      options->flags = flags;
      options->json_file = json_file;
    }
    deadlock_options.flags = flags;
    deadlock_options.json_file = json_file;
  }
  if (peak->parsed()) return sluice::bench::RunPeak(&peak_options);
  if (deadlock->parsed()) return sluice::bench::RunDeadlock(deadlock_options);
  return sluice::bench::RunScale(&scale_options);
}
