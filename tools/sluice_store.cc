// sluice-store: serves the store where the members of a world meet, until it is interrupted. No
// MPI.
#include <signal.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "job/exit_codes.h"
#include "job/help.h"
#include "sluice/status.h"
#include "sluice/store.h"
#include "world/store/store_check.h"

namespace sluice::bench {
namespace {

struct Flags {
  std::string bind = "127.0.0.1";
  int port = 0;
  std::string token_file;
};

// CLI11 reads numbers that begin with 0 as octal. Ports are decimal, as everywhere else.
std::string WithoutLeadingZeros(std::string& text) {
  text.erase(0, std::min(text.find_first_not_of('0'), text.empty() ? 0 : text.size() - 1));
  return {};
}

// A store takes more connections than most systems let a process have at first.
void RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  constexpr rlim_t kWanted = 4096;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kWanted));
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

absl::Status Serve(const Flags& flags) {
  StoreServerOptions options;
  options.bind = flags.bind;
  options.port = flags.port;
  if (!flags.token_file.empty()) {
    SLUICE_ASSIGN_OR_RETURN(options.token, ReadTokenFile(flags.token_file));
  }
  RaiseFileLimit();
  // Before there are other threads, so that only this one hears of signals.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  SLUICE_ASSIGN_OR_RETURN(const auto server, StoreServer::Listen(options));
  std::printf("listening on %s\n", server->address().c_str());
  std::fflush(stdout);
  int signal = 0;
  while (sigwait(&ends, &signal) != 0) {
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  sluice::bench::Flags flags;
  CLI::App app("Serves the store where the members of a world meet, until SIGINT or SIGTERM.",
               "sluice-store");
  app.set_version_flag("--version", absl::StrCat("sluice-store ", SLUICE_VERSION));
  app.add_option("--bind", flags.bind,
                 "address or name of this host to listen at; \"\" for all its interfaces; others "
                 "than 127.0.0.1 take a token [127.0.0.1]");
  app.add_option("--port", flags.port, "port to listen at [0: any free one]")
      ->transform(CLI::Validator(sluice::bench::WithoutLeadingZeros, ""))
      ->check(CLI::Range(0, 65535));
  app.add_option("--token-file", flags.token_file,
                 "file with the secret that members must know, which is never sent");
  sluice::bench::SetHelp(&app, "build/bin/sluice-store --port 4711",
                         "It prints one line when it listens: listening on tcp://HOST:PORT");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "sluice-store: " << sluice::bench::FlagsStatus(app, error).message() << "\n";
    return sluice::bench::kBadUsageExit;
  }
  const absl::Status status = sluice::bench::Serve(flags);
  if (status.ok()) return sluice::bench::kGoodExit;
  std::cerr << "sluice-store: " << status.message() << "\n";
  return sluice::bench::ExitCodeOf(status);
}
