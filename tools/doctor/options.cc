// Declaring the flags.
#include "doctor/options.h"

#include <CLI/CLI.hpp>
#include <limits>

#include "job/flags.h"
#include "job/help.h"

namespace sluice::bench {

void AddDoctorFlags(CLI::App* app, DoctorOptions* o) {
  OrAuto(app->add_option("--ranks-per-node", o->ranks_per_node,
                         "take every N ranks for a node [auto: by host and namespace]")
             ->check(CLI::Range(0, std::numeric_limits<int>::max())));
  AddFabric(app, &o->fabric);
  AddSeconds(app, "--timeout-s", &o->timeout_s,
             "seconds that ranks may take to come together [30]");
  AddSwitch(app, "--strict", &o->strict, "end with 1 also where all that was found is slow");
  app->add_option("-J,--json", o->json_file, "write the findings here, also on failure");
  SetHelp(
      app, "scripts/mpirun.sh --oversubscribe -np 4 build/bin/sluice-bench doctor",
      "Each line says ok, slow (it works, and costs time) or missing (it does not work). Under\n"
      "a line that is not ok stands what to do. The exit code is 1 if something is missing.");
}

}  // namespace sluice::bench
