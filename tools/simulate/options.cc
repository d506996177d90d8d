// Declaring and reading the flags.
#include "simulate/options.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/flags.h"
#include "workload/json_input.h"
#include "workload/numbers.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

constexpr int64_t kBudgetMax = 1 << 20;

// What was given takes the place of the preset's.
template <typename From, typename To>
void Take(From given, double unit, To* parameter) {
  if (given >= 0) *parameter = static_cast<To>(static_cast<double>(given) * unit);
}

void AddNetworkFlags(CLI::App* app, SimOptions* o) {
  const char* network = "Network model (each parameter takes the place of the named model's)";
  app->add_option(
         "--network", o->network_name,
         absl::StrCat("one of ", absl::StrJoin(sim::NetworkModelNames(), ", "), " [ports]"))
      ->group(network);
  app->add_option("--port-rate", o->port_rate_gb, "GB/s of a rank's port, each way")
      ->check(CLI::NonNegativeNumber)
      ->group(network);
  app->add_option("--latency-us", o->latency_us, "from both sides ready to bytes flowing")
      ->check(CLI::NonNegativeNumber)
      ->group(network);
  app->add_option("--ranks-per-node", o->ranks_per_node, "ranks that share a node")
      ->check(CLI::Range(1, 1 << 16))
      ->group(network);
  app->add_option("--nics-per-node", o->nics_per_node, "NICs that a node's ranks share")
      ->check(CLI::Range(1, 1 << 16))
      ->group(network);
  app->add_option("--nic-rate", o->nic_rate_gb, "GB/s of a NIC, each way")
      ->check(CLI::NonNegativeNumber)
      ->group(network);
  app->add_option("--nic-latency-us", o->nic_latency_us, "as --latency-us, between nodes")
      ->check(CLI::NonNegativeNumber)
      ->group(network);
  app->add_option("--copy-rate", o->copy_rate_gb, "GB/s of packing, unpacking and adding")
      ->check(CLI::NonNegativeNumber)
      ->group(network);
  app->add_option("--copy-latency-us", o->copy_latency_us, "of each such copy")
      ->check(CLI::NonNegativeNumber)
      ->group(network);
  AddSwitch(app, "--copies-block", &o->copies_block,
            "ranks copy themselves, as without a GPU, and do nothing else meanwhile")
      ->group(network);
  AddSwitch(app, "--folds", &o->folds,
            "ranks of a node add up contributions where they lie, as hosts with shared memory")
      ->group(network);
}

absl::Status ParseNetwork(SimOptions* options) {
  // Ranges of flags let what is no number pass.
  for (const double value :
       {options->start_skew_us, options->port_rate_gb, options->latency_us, options->nic_rate_gb,
        options->nic_latency_us, options->copy_rate_gb, options->copy_latency_us}) {
    if (std::isnan(value)) return absl::InvalidArgumentError("a flag's value is nan");
  }
  absl::StatusOr<sim::NetworkModel> model = sim::NetworkModelNamed(options->network_name);
  if (!model.ok()) return Prefixed("--network", model.status());
  Take(options->port_rate_gb, 1e9, &model->port_rate);
  Take(options->latency_us, 1e-6, &model->latency);
  Take(options->ranks_per_node, 1, &model->ranks_per_node);
  Take(options->nics_per_node, 1, &model->nics_per_node);
  Take(options->nic_rate_gb, 1e9, &model->nic_rate);
  Take(options->nic_latency_us, 1e-6, &model->nic_latency);
  Take(options->copy_rate_gb, 1e9, &model->copy_rate);
  Take(options->copy_latency_us, 1e-6, &model->copy_latency);
  model->copies_block = options->copies_block;
  model->folds = options->folds;
  options->network = *std::move(model);
  return sim::ValidateNetworkModel(options->network);
}

}  // namespace

void AddSimFlags(CLI::App* app, const std::string& budgets, SimOptions* o) {
  const char* knobs = "Knobs";
  o->budgets_text = budgets;
  app->add_option("--budget-buckets", o->budgets_text,
                  absl::StrCat("most buckets of a rank at once, one run for each: 0 for no limit [",
                               budgets, "]"))
      ->group(knobs);
  OrAuto(app->add_option("--max-in-flight", o->max_in_flight,
                         "most buckets of a channel at once [2]; auto or 0: as in a session and in "
                         "reshard")
             ->check(CLI::Range(0, 1 << 16))
             ->group(knobs));
  app->add_option("--bucket-bytes", o->bucket_bytes_text,
                  "most bytes of a bucket [8M]; auto or 0: as in a session and in reshard")
      ->group(knobs);
  app->add_option("--plan", o->plan,
                  "relay, or naive: each rank gets its bytes from one that holds them [relay]")
      ->check(CLI::IsMember({"relay", "naive"}))
      ->group(knobs);
  AddSwitch(app, "--no-coalesce", &o->no_coalesce,
            "small chunks do not join: each chunk is a bucket of its own")
      ->group(knobs);
  app->add_option("--look-ahead", o->look_ahead, "buckets that an engine knows ahead [4096]")
      ->check(CLI::Range(1, 1 << 20))
      ->group(knobs);
  app->add_option("--seed", o->seed, "of what is random [0]")->group(knobs);
  app->add_option("--start-skew-us", o->start_skew_us,
                  "ranks start at random times up to this [0: together]")
      ->check(CLI::Range(0.0, 1e9))
      ->group(knobs);
  AddNetworkFlags(app, o);
  const char* output = "Output";
  app->add_option("-J,--json", o->json_file, "write the results here, also on failure")
      ->group(output);
  app->add_option("--csv", o->csv_file, "write the results here, a line each")->group(output);
  AddSwitch(app, "--costs", &o->costs,
            "in the JSON, too, what planning and simulating took (which differs between runs)")
      ->group(output);
  AddSwitch(app, "--progress", &o->progress, "show progress also where stderr is no terminal")
      ->group(output);
}

absl::Status ParseSimTexts(SimOptions* options) {
  if (!options->flags.ok()) return options->flags;
  const auto bucket_bytes = ParseBytesOrAuto(options->bucket_bytes_text);
  if (!bucket_bytes.ok()) return Prefixed("--bucket-bytes", bucket_bytes.status());
  if (*bucket_bytes != 0 && (*bucket_bytes < 16 || *bucket_bytes > int64_t{1} << 30)) {
    return absl::InvalidArgumentError("--bucket-bytes: 16 to 1G, or auto");
  }
  options->bucket_bytes = *bucket_bytes;
  auto budgets = ParseIntegers(options->budgets_text);
  if (!budgets.ok()) return Prefixed("--budget-buckets", budgets.status());
  for (const int64_t budget : *budgets) {
    if (budget < 0 || budget > kBudgetMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("--budget-buckets: ", budget, "; 0 (no limit) to ", kBudgetMax));
    }
  }
  options->budgets = *std::move(budgets);
  if (absl::Status status = ParseNetwork(options); !status.ok()) return status;
  return MakeWritable({options->json_file, options->csv_file});
}

}  // namespace sluice::bench
