// Reading the flags of slow_fs.
#include "fuse/slow_fs_options.h"

#include <CLI/CLI.hpp>
#include <limits>

namespace sluice::fuse {

absl::StatusOr<SlowFsOptions> ParseSlowFsOptions(int argc, char** argv) {
  constexpr int kMax = std::numeric_limits<int>::max();
  constexpr double kLongMs = 1e6;
  SlowFsOptions options;
  std::string faults;
  CLI::App app("Shows a directory read-only, slowly and with faults, as a file system.");
  app.add_option("--source", options.source, "the directory to show")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--mount", options.mount, "where to show it")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--latency-ms", options.fate.latency_ms, "of each read [0]")
      ->check(CLI::Range(0.0, kLongMs));
  app.add_option("--jitter", options.fate.jitter, "share of the latency, more or less [0]")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--tail-percent", options.fate.tail_percent, "of the reads are slow [0]")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--tail-factor", options.fate.tail_factor, "times as slow [10]")
      ->check(CLI::Range(0.0, kLongMs));
  app.add_option("--meta-latency-ms", options.meta_latency_ms,
                 "of each look-up, look at attributes and open [0]")
      ->check(CLI::Range(0.0, kLongMs));
  app.add_option("--fault", faults, "shares, e.g. eio:0.01,dead:0.001,short:0.1,truncate:0.001");
  app.add_option("--seed", options.fate.seed, "of jitter, tail and faults [0]");
  app.add_option("--hold", options.hold, "the first N reads end only once all N have come [0]")
      ->check(CLI::Range(0, kMax));
  app.add_flag("--cached", options.cached, "let the page cache keep what was read");
  app.add_option("--threads", options.threads, "that copy [4]")->check(CLI::Range(1, 256));
  app.add_option("--log", options.log_file, "counts as JSON, on SIGUSR1 and at the end");
  app.add_option("--ready-fd", options.ready_fd, "says 'm' when mounted, 'r' after each report");
  app.add_option("--parent", options.parent, "unmount when this parent process ends");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);
      return absl::InvalidArgumentError("");
    }
    return absl::InvalidArgumentError(error.what());
  }
  if (absl::Status status = ParseFaults(faults, &options.fate); !status.ok()) return status;
  return options;
}

}  // namespace sluice::fuse
