// How --help looks in all programs: an example that runs when it is pasted, the flags that most
// runs need, and the exit codes. --help-all has all flags.
#ifndef SLUICE_BENCH_JOB_HELP_H_
#define SLUICE_BENCH_JOB_HELP_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace sluice::bench {

// `example`: lines to paste into a shell in the repository's folder. `more`: what follows the
// flags, before the exit codes; may be empty. `first`: the flags of --help, without dashes; with
// none --help has all, and there is no --help-all.
void SetHelp(CLI::App* app, const std::string& example, const std::string& more = "",
             const std::vector<std::string>& first = {});

// InvalidArgument: what is wrong with the flags of `app`, or of the command among them.
// Says which flag is meant where an unknown one is near to it.
absl::Status FlagsStatus(const CLI::App& app, const CLI::ParseError& error);

// Whether parsing failed before `app` had found which of its commands is meant.
bool NamesNoCommand(const CLI::App& app);

// What a program of several commands says then: what is wrong, and the help of all its commands.
std::string NoCommandText(const CLI::App& app, int argc, char** argv);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_HELP_H_
