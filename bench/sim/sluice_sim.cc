// sluice-sim: the engine without a network. No MPI.
#include <CLI/CLI.hpp>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "sim/deadlock.h"

namespace {

constexpr int kBadOptionsExit = 2;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs the engine of a job in a simulated world.");
  app.set_version_flag("--version", absl::StrCat("sluice-sim ", SLUICE_VERSION));
  app.require_subcommand(1);
  sluice::bench::DeadlockOptions deadlock_options;
  const CLI::App* deadlock = sluice::bench::AddDeadlockCommand(app, &deadlock_options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == EXIT_SUCCESS ? EXIT_SUCCESS : kBadOptionsExit;
  }
  if (deadlock->parsed()) return sluice::bench::RunDeadlock(deadlock_options);
  return EXIT_FAILURE;
}
