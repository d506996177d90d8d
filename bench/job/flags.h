// Flags that several commands have: one form of each.
#ifndef SLUICE_BENCH_JOB_FLAGS_H_
#define SLUICE_BENCH_JOB_FLAGS_H_

#include <functional>
#include <string>

#include "absl/time/time.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice::bench {

// How much of what has arrived is compared with what it must be. Results have the number.
enum class Check : int { kNone = 0, kAll = 1, kSample = 2 };

// All of them return the option, for its group.

// A flag that may also take 0 or 1: --hedge, --hedge 1 and --hedge=1 are the same.
CLI::Option* AddSwitch(CLI::App* app, const std::string& names, bool* value,
                       const std::string& help);

// Takes none, sample or all; 0 for none, 1 and full for all.
CLI::Option* AddCheck(CLI::App* app, const std::string& names,
                      const std::function<void(Check)>& set, const std::string& help);

// A time in seconds, which may have a fraction.
CLI::Option* AddSeconds(CLI::App* app, const std::string& names, double* value,
                        const std::string& help);
CLI::Option* AddSeconds(CLI::App* app, const std::string& names, absl::Duration* value,
                        const std::string& help);

// Lets a number be given as "auto", which stands for `number`. To be called after the option's own
// checks, which `number` must pass.
CLI::Option* OrAuto(CLI::Option* option, const std::string& number = "0");

// --fabric: what the ranks meet over; see ChooseFabric.
CLI::Option* AddFabric(CLI::App* app, std::string* fabric);

// Its value, also where the flags around it cannot be parsed.
std::string FindFabric(int argc, char** argv);

// The results file that was asked for, also where the flags around it cannot be parsed. Empty:
// none.
std::string FindJsonFile(int argc, char** argv);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_FLAGS_H_
