// The measurements of micro-bench that take flags of their own.
#ifndef SLUICE_BENCH_MICRO_COMMANDS_H_
#define SLUICE_BENCH_MICRO_COMMANDS_H_

#include <functional>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace sluice::bench {

// Measures, and prints what came of it.
using Work = std::function<absl::Status()>;

// Each gives `app` its flags, and returns what to do once they are parsed.
Work AddConnect(CLI::App* app);
Work AddHandOver(CLI::App* app);
Work AddPlan(CLI::App* app);
Work AddSmallSync(CLI::App* app);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_MICRO_COMMANDS_H_
