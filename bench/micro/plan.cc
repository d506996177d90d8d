// micro-bench plan: what planning costs one rank: time and memory, for a model on a large system.
//
// Plans as several ranks in turn, each on its own as a job's ranks would; time is of the slowest,
// memory the process's growth over all of them. `sluice-sim --costs` says what planning as all
// ranks costs.
#include "plan/plan.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "memory/resident_memory.h"
#include "micro/commands.h"
#include "sluice/session.h"
#include "sluice/status.h"
#include "workload/model_file.h"
#include "workload/model_mapping.h"
#include "workload/shipped_file.h"
#include "workload/system_file.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRanksPerNode = 8;

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

double MegabytesMost() {
  const auto memory = ReadResidentMemory();
  return memory ? static_cast<double>(memory->peak) * 1e-6 : 0;
}

struct PlanBenchOptions {
  std::string model, system;
  int samples = 16;
};

// Each as a job's rank would, on its own.
absl::Status PlanSamples(const TransferSpec& spec, const PlanOptions& options, int ranks,
                         int samples) {
  std::printf("%8s %10s %10s %10s %12s %12s\n", "rank", "plan_ms", "buckets", "channels", "sent_MB",
              "received_MB");
  double slowest_ms = 0;
  for (int i = 0; i < samples; ++i) {
    const int rank = static_cast<int>(static_cast<int64_t>(ranks) * i / samples);
    const Clock::time_point begin = Clock::now();
    absl::Status status = ValidateSpec(spec, ranks);
    absl::StatusOr<Plan> plan = MakePlan(spec, options, rank);
    status.Update(plan.status());
    if (status.ok() && HashPlan(spec, options).all == 0) status = absl::InternalError("no hash");
    const double plan_ms = Milliseconds(Clock::now() - begin);
    if (!status.ok()) return status;
    slowest_ms = std::max(slowest_ms, plan_ms);
    std::printf("%8d %10.1f %10zu %10zu %12.1f %12.1f\n", rank, plan_ms, plan->buckets.size(),
                plan->channels.size(), static_cast<double>(plan->sent_bytes) / 1e6,
                static_cast<double>(plan->received_bytes) / 1e6);
  }
  std::printf("# slowest rank %.1f ms", slowest_ms);
  return absl::OkStatus();
}

absl::Status MeasurePlans(const PlanBenchOptions& run) {
  SLUICE_ASSIGN_OR_RETURN(const std::string model_text, ReadShippedFile(run.model, "models"));
  SLUICE_ASSIGN_OR_RETURN(const std::string system_text, ReadShippedFile(run.system, "systems"));
  SLUICE_ASSIGN_OR_RETURN(const Model model, ParseModelFile(model_text, {}));
  SLUICE_ASSIGN_OR_RETURN(const System system, ParseSystemFile(system_text));
  SLUICE_ASSIGN_OR_RETURN(const TransferSpec spec, MapModel(model, system));
  const int ranks = static_cast<int>(system.train.num_gpus + system.generation.num_gpus);
  std::vector<int> nodes(static_cast<size_t>(ranks));
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    nodes[rank] = static_cast<int>(rank) / kRanksPerNode;
  }
  PlanOptions options;
  options.node_of_rank = nodes;
  options.slots = SessionOptions().budget_buckets;
  options.bucket_bytes = int64_t{8} << 20;  // of what lies ready, or is on devices

  const double before_mb = MegabytesMost();
  std::printf("# %zu tensors, %d ranks, %d per node\n", spec.tensors.size(), ranks, kRanksPerNode);
  absl::Status status = PlanSamples(spec, options, ranks, run.samples);
  if (status.ok()) {
    std::printf(", memory of planning at most %.0f MB\n", MegabytesMost() - before_mb);
  }
  return status;
}

}  // namespace

Work AddPlan(CLI::App* app) {
  const auto run = std::make_shared<PlanBenchOptions>();
  app->add_option("--model", run->model, "model file, or name")->required();
  app->add_option("--system", run->system, "system file, or name")->required();
  app->add_option("--samples", run->samples, "how many ranks to plan as")
      ->check(CLI::PositiveNumber);
  return [run] { return MeasurePlans(*run); };
}

}  // namespace sluice::bench
