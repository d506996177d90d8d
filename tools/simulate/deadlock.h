// `sluice-sim deadlock`: random jobs under a rule of admission, and how many of them stall.
#ifndef SLUICE_TOOLS_SIMULATE_DEADLOCK_H_
#define SLUICE_TOOLS_SIMULATE_DEADLOCK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace sluice::bench {

// The flags as they were typed: their names are an interface.
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
// all
//    its premises on. CTRL-C gives 130, and ends the search with what is known by then.
int RunDeadlock(const DeadlockOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_SIMULATE_DEADLOCK_H_
