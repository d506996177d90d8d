// Declaring and reading the flags.
#include "simulate/options.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/flag_list.h"
#include "job/flags.h"
#include "sluice/status.h"
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

absl::Status ParseNetwork(SimOptions* options) {
  // Ranges of flags let what is no number pass.
  for (const double value :
       {options->start_skew_us, options->port_rate_gb, options->latency_us, options->nic_rate_gb,
        options->nic_latency_us, options->copy_rate_gb, options->copy_latency_us}) {
    if (std::isnan(value)) return absl::InvalidArgumentError("a flag's value is nan");
  }
  SLUICE_ASSIGN_OR_RETURN(sim::NetworkModel model,
                          Prefixed("--network", sim::NetworkModelNamed(options->network_name)));
  Take(options->port_rate_gb, 1e9, &model.port_rate);
  Take(options->latency_us, 1e-6, &model.latency);
  Take(options->ranks_per_node, 1, &model.ranks_per_node);
  Take(options->nics_per_node, 1, &model.nics_per_node);
  Take(options->nic_rate_gb, 1e9, &model.nic_rate);
  Take(options->nic_latency_us, 1e-6, &model.nic_latency);
  Take(options->copy_rate_gb, 1e9, &model.copy_rate);
  Take(options->copy_latency_us, 1e-6, &model.copy_latency);
  model.copies_block = options->copies_block;
  model.folds = options->folds;
  options->network = std::move(model);
  return sim::ValidateNetworkModel(options->network);
}

}  // namespace

void AddSimFlags(CLI::App* app, const std::string& budgets, SimOptions* o) {
  o->budgets_text = budgets;
  const std::string budgets_help = absl::StrCat(
      "most buckets of a rank at once, one run for each: 0 for no limit [", budgets, "]");
  const std::string network_help =
      absl::StrCat("one of ", absl::StrJoin(sim::NetworkModelNames(), ", "), " [ports]");
  AddFlags(
      app,
      {{"Knobs",
        {{"--budget-buckets", &o->budgets_text, budgets_help.c_str()},
         {"--max-in-flight", &o->max_in_flight,
          "most buckets of a channel at once [2]; auto or 0: as in a session and in reshard",
          Within(0, 1 << 16)},
         {"--bucket-bytes", &o->bucket_bytes_text,
          "most bytes of a bucket [8M]; auto or 0: as in a session and in reshard"},
         {"--plan", &o->plan,
          "relay, or naive: each rank gets its bytes from one that holds them [relay]",
          OneOf({"relay", "naive"})},
         {"--no-coalesce", &o->no_coalesce,
          "small chunks do not join: each chunk is a bucket of its own"},
         {"--look-ahead", &o->look_ahead, "buckets that an engine knows ahead [4096]",
          Within(1, 1 << 20)},
         {"--seed", &o->seed, "of what is random [0]"},
         {"--start-skew-us", &o->start_skew_us,
          "ranks start at random times up to this [0: together]", Within(0, 1e9)}}},
       {"Network model (each parameter takes the place of the named model's)",
        {{"--network", &o->network_name, network_help.c_str()},
         {"--port-rate", &o->port_rate_gb, "GB/s of a rank's port, each way"},
         {"--latency-us", &o->latency_us, "from both sides ready to bytes flowing"},
         {"--ranks-per-node", &o->ranks_per_node, "ranks that share a node", Within(1, 1 << 16)},
         {"--nics-per-node", &o->nics_per_node, "NICs that a node's ranks share",
          Within(1, 1 << 16)},
         {"--nic-rate", &o->nic_rate_gb, "GB/s of a NIC, each way"},
         {"--nic-latency-us", &o->nic_latency_us, "as --latency-us, between nodes"},
         {"--copy-rate", &o->copy_rate_gb, "GB/s of packing, unpacking and adding"},
         {"--copy-latency-us", &o->copy_latency_us, "of each such copy"},
         {"--copies-block", &o->copies_block,
          "ranks copy themselves, as without a GPU, and do nothing else meanwhile"},
         {"--folds", &o->folds,
          "ranks of a node add up contributions where they lie, as hosts with shared memory"}}},
       {"Output",
        {{"-J,--json", &o->json_file, "write the results here, also on failure"},
         {"--csv", &o->csv_file, "write the results here, a line each"},
         {"--costs", &o->costs,
          "in the JSON, too, what planning and simulating took (which differs between runs)"},
         {"--progress", &o->progress, "show progress also where stderr is no terminal"}}}});
  OrAuto(app->get_option("--max-in-flight"));
  OrAuto(app->get_option("--bucket-bytes"));
  for (const char* rate : {"--port-rate", "--latency-us", "--nic-rate", "--nic-latency-us",
                           "--copy-rate", "--copy-latency-us"}) {
    app->get_option(rate)->check(CLI::NonNegativeNumber);
  }
}

absl::Status ParseSimTexts(SimOptions* options) {
  if (!options->flags.ok()) return options->flags;
  SLUICE_ASSIGN_OR_RETURN(const auto bucket_bytes,
                          Prefixed("--bucket-bytes", ParseBytes(options->bucket_bytes_text)));
  if (bucket_bytes != 0 && (bucket_bytes < 16 || bucket_bytes > int64_t{1} << 30)) {
    return absl::InvalidArgumentError("--bucket-bytes: 16 to 1G, or auto");
  }
  options->bucket_bytes = bucket_bytes;
  SLUICE_ASSIGN_OR_RETURN(auto budgets,
                          Prefixed("--budget-buckets", ParseIntegers(options->budgets_text)));
  for (const int64_t budget : budgets) {
    if (budget < 0 || budget > kBudgetMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("--budget-buckets: ", budget, "; 0 (no limit) to ", kBudgetMax));
    }
  }
  options->budgets = std::move(budgets);
  SLUICE_RETURN_IF_ERROR(ParseNetwork(options));
  return MakeWritable({options->json_file, options->csv_file});
}

}  // namespace sluice::bench
