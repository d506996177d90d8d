// What planning costs one rank: time and memory, for a model on a large system. No MPI.
//
// Plans as several ranks in turn, each on its own as a job's ranks would; time is of the slowest,
// memory the process's growth over all of them.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "workload/model_file.h"
#include "workload/model_mapping.h"
#include "workload/system_file.h"

namespace {

using Clock = std::chrono::steady_clock;
using sluice::HashPlan;
using sluice::MakePlan;
using sluice::Plan;
using sluice::PlanOptions;
using sluice::TransferSpec;
using sluice::ValidateSpec;
namespace bench = sluice::bench;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

double MegabytesResidentMax() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;  // Linux reports KiB
}

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

int Run(const std::string& model_path, const std::string& system_path, int ranks_per_node,
        int samples) {
  absl::StatusOr<bench::Model> model = bench::ParseModelFile(ReadFile(model_path), {});
  absl::StatusOr<bench::System> system = bench::ParseSystemFile(ReadFile(system_path));
  if (!model.ok() || !system.ok()) {
    std::fprintf(stderr, "plan_bench: %s %s\n", model.status().ToString().c_str(),
                 system.status().ToString().c_str());
    return 1;
  }
  absl::StatusOr<TransferSpec> spec = bench::MapModel(*model, *system);
  if (!spec.ok()) {
    std::fprintf(stderr, "plan_bench: %s\n", spec.status().ToString().c_str());
    return 1;
  }
  const int ranks = static_cast<int>(system->train.num_gpus + system->generation.num_gpus);
  std::vector<int> nodes(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) nodes[static_cast<size_t>(rank)] = rank / ranks_per_node;
  PlanOptions options;
  options.node_of_rank = nodes;

  const double before_mb = MegabytesResidentMax();
  std::printf("# %zu tensors, %d ranks, %d per node\n", spec->tensors.size(), ranks,
              ranks_per_node);
  std::printf("%8s %10s %10s %10s %12s %12s\n", "rank", "plan_ms", "buckets", "channels", "sent_MB",
              "received_MB");
  double slowest_ms = 0;
  for (int i = 0; i < samples; ++i) {
    const int rank = static_cast<int>(static_cast<int64_t>(ranks) * i / samples);
    const Clock::time_point begin = Clock::now();
    absl::Status status = ValidateSpec(*spec, ranks);
    absl::StatusOr<Plan> plan = MakePlan(*spec, options, rank);
    const uint64_t hash = HashPlan(*spec, options).all;
    const double plan_ms = Milliseconds(Clock::now() - begin);
    if (!status.ok() || !plan.ok() || hash == 0) {
      std::fprintf(stderr, "plan_bench: %s %s\n", status.ToString().c_str(),
                   plan.status().ToString().c_str());
      return 1;
    }
    slowest_ms = std::max(slowest_ms, plan_ms);
    std::printf("%8d %10.1f %10zu %10zu %12.1f %12.1f\n", rank, plan_ms, plan->buckets.size(),
                plan->channels.size(), static_cast<double>(plan->sent_bytes) / 1e6,
                static_cast<double>(plan->received_bytes) / 1e6);
  }
  std::printf("# slowest rank %.1f ms, memory of planning at most %.0f MB\n", slowest_ms,
              MegabytesResidentMax() - before_mb);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times planning for single ranks of a large transfer");
  std::string model, system;
  int ranks_per_node = 8, samples = 16;
  app.add_option("--model", model, "model file")->required()->check(CLI::ExistingFile);
  app.add_option("--system", system, "system file")->required()->check(CLI::ExistingFile);
  app.add_option("--ranks-per-node", ranks_per_node, "ranks that share a node")
      ->check(CLI::PositiveNumber);
  app.add_option("--samples", samples, "how many ranks to plan as")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return Run(model, system, ranks_per_node, samples);
}
