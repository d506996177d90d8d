// What planning costs one rank: time and memory, for a model on a large system. No MPI.
//
// Plans as several ranks in turn, each on its own as a job's ranks would; time is of the slowest,
// memory the process's growth over all of them. Or as all ranks, as a simulator would.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "plan/job_planner.h"
#include "plan/plan.h"
#include "sluice/session.h"
#include "workload/model_file.h"
#include "workload/model_mapping.h"
#include "workload/shipped_file.h"
#include "workload/system_file.h"

namespace {

using Clock = std::chrono::steady_clock;
using sluice::HashPlan;
using sluice::JobPlanner;
using sluice::MakePlan;
using sluice::Plan;
using sluice::PlanOptions;
using sluice::TransferSpec;
using sluice::ValidateSpec;
namespace bench = sluice::bench;

double MegabytesResidentMax() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;  // Linux reports KiB
}

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

struct Options {
  std::string model, system;
  int layers = 0, ranks_per_node = 8, samples = 16;
  bool all = false;
};

// Each as a job's rank would, on its own.
int PlanSamples(const TransferSpec& spec, const PlanOptions& options, int ranks, int samples) {
  std::printf("%8s %10s %10s %10s %12s %12s\n", "rank", "plan_ms", "buckets", "channels", "sent_MB",
              "received_MB");
  double slowest_ms = 0;
  for (int i = 0; i < samples; ++i) {
    const int rank = static_cast<int>(static_cast<int64_t>(ranks) * i / samples);
    const Clock::time_point begin = Clock::now();
    absl::Status status = ValidateSpec(spec, ranks);
    absl::StatusOr<Plan> plan = MakePlan(spec, options, rank);
    const uint64_t hash = HashPlan(spec, options).all;
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
  std::printf("# slowest rank %.1f ms", slowest_ms);
  return 0;
}

// One after the other, sharing what is alike.
int PlanAll(const TransferSpec& spec, const PlanOptions& options, int ranks) {
  const Clock::time_point begin = Clock::now();
  JobPlanner planner(spec, options);
  size_t buckets = 0, buckets_max = 0, channels_max = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    absl::StatusOr<Plan> plan = planner.PlanOf(rank);
    if (!plan.ok()) {
      std::fprintf(stderr, "plan_bench: %s\n", plan.status().ToString().c_str());
      return 1;
    }
    buckets += plan->buckets.size();
    buckets_max = std::max(buckets_max, plan->buckets.size());
    channels_max = std::max(channels_max, plan->channels.size());
  }
  const double all_ms = Milliseconds(Clock::now() - begin);
  std::printf("# at most %zu buckets and %zu channels; %zu parts of buckets in all, %.0f ns each\n",
              buckets_max, channels_max, buckets, all_ms * 1e6 / static_cast<double>(buckets));
  std::printf("# all ranks in %.2f s", all_ms * 1e-3);
  return 0;
}

int Run(const Options& run) {
  const absl::StatusOr<std::string> model_text = bench::ReadShippedFile(run.model, "models");
  const absl::StatusOr<std::string> system_text = bench::ReadShippedFile(run.system, "systems");
  if (!model_text.ok() || !system_text.ok()) {
    std::fprintf(stderr, "plan_bench: %s %s\n", model_text.status().ToString().c_str(),
                 system_text.status().ToString().c_str());
    return 1;
  }
  const absl::StatusOr<bench::Model> model =
      bench::ParseModelFile(*model_text, {.layers = run.layers});
  const absl::StatusOr<bench::System> system = bench::ParseSystemFile(*system_text);
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
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    nodes[rank] = static_cast<int>(rank) / run.ranks_per_node;
  }
  PlanOptions options;
  options.node_of_rank = nodes;
  options.slots = sluice::SessionOptions().budget_buckets;
  options.bucket_bytes = int64_t{8} << 20;  // of what lies ready, or is on devices

  const double before_mb = MegabytesResidentMax();
  std::printf("# %zu tensors, %d ranks, %d per node\n", spec->tensors.size(), ranks,
              run.ranks_per_node);
  const int failed =
      run.all ? PlanAll(*spec, options, ranks) : PlanSamples(*spec, options, ranks, run.samples);
  if (failed != 0) return failed;
  std::printf(", memory of planning at most %.0f MB\n", MegabytesResidentMax() - before_mb);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times planning for single ranks of a large transfer");
  Options run;
  app.add_option("--model", run.model, "model file, or name")->required();
  app.add_option("--system", run.system, "system file, or name")->required();
  app.add_option("--layers", run.layers, "keep the first so many layers of the model; 0: all")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--ranks-per-node", run.ranks_per_node, "ranks that share a node")
      ->check(CLI::PositiveNumber);
  app.add_option("--samples", run.samples, "how many ranks to plan as")->check(CLI::PositiveNumber);
  app.add_flag("--all", run.all, "plan as all ranks, and share what is alike for them");
  CLI11_PARSE(app, argc, argv);
  return Run(run);
}
