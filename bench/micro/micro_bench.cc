// micro-bench: measures single parts of Sluice. Nothing is checked here but what a command says.
//
//   build/bin/micro-bench --benchmark_filter=BM_Bucket    # Google Benchmark's; "" for all
//   build/bin/micro-bench plan --model deepseek-v3 --system deepseek-v3-512-512
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "job/exit_codes.h"
#include "micro/commands.h"

int main(int argc, char** argv) {
  namespace bench = sluice::bench;
  if (argc > 1 && absl::StartsWith(argv[1], "--benchmark_")) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return bench::kBadUsageExit;
    benchmark::RunSpecifiedBenchmarks();
    return bench::kGoodExit;
  }
  CLI::App app("Measures single parts of Sluice: by a command, or with --benchmark_filter=REGEX.");
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, bench::Work>> commands;
  const auto add = [&](const char* name, const char* what, bench::Work (*flags)(CLI::App*)) {
    CLI::App* const command = app.add_subcommand(name, what);
    commands.emplace_back(command, flags(command));
  };
  add("connect", "Connect on the ranks of a world", bench::AddConnect);
  add("hand-over", "giving a consumer an item, against a queue with a lock", bench::AddHandOver);
  add("plan", "planning a large transfer on single ranks", bench::AddPlan);
  add("small-sync", "syncs of many small tensors on the ranks of a world", bench::AddSmallSync);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? bench::kGoodExit : bench::kBadUsageExit;
  }
  for (const auto& [command, work] : commands) {
    if (!command->parsed()) continue;
    const absl::Status status = work();
    if (status.ok()) return bench::kGoodExit;
    std::cerr << "micro-bench " << command->get_name() << ": " << status << "\n";
  }
  return bench::kFailedExit;
}
