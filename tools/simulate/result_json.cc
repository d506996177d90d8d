// The results file of `sluice-sim peak` and `scale`.
#include <utility>

#include "absl/strings/str_cat.h"
#include "simulate/result.h"

namespace sluice::bench {
namespace {

Json NetworkJson(const sim::NetworkModel& network) {
  Json json = {{"port_rate", network.port_rate},
               {"latency_us", network.latency * 1e6},
               {"ranks_per_node", network.ranks_per_node},
               {"copy_rate", network.copy_rate},
               {"copy_latency_us", network.copy_latency * 1e6},
               {"copies_block", network.copies_block},
               {"folds", network.folds}};
  if (network.kind == sim::NetworkModel::Kind::kNodes) {
    json["nics_per_node"] = network.nics_per_node;
    json["nic_rate"] = network.nic_rate;
    json["nic_latency_us"] = network.nic_latency * 1e6;
  }
  return json;
}

Json ConfigJson(const SimOptions& options, const SimReport& report) {
  Json config = report.what;
  config["budget_buckets"] = options.budgets;
  config["bucket_bytes"] = options.bucket_bytes;
  config["max_in_flight"] = options.max_in_flight;
  config["plan"] = options.plan;
  config["coalesce"] = !options.no_coalesce;
  config["look_ahead"] = options.look_ahead;
  config["seed"] = options.seed;
  config["start_skew_us"] = options.start_skew_us;
  config["network"] = options.network_name;
  return config;
}

Json ResultJson(const SimOptions& options, const SimResult& r) {
  Json row = SimColumns().ToJson(r);
  row["case"] =
      absl::StrCat(r.family, options.budgets.size() > 1 ? absl::StrCat("/budget-", r.budget) : "");
  if (options.bucket_bytes == 0) row["bucket_bytes"] = r.bucket_bytes;
  if (r.stopped) row["stopped"] = true;
  if (options.costs) {
    row["costs"] = {{"plan_seconds", r.plan_seconds},
                    {"distinct_plans", r.distinct_plans},
                    {"plan_bytes_per_rank", r.plan_bytes_per_rank},
                    {"simulate_seconds", r.simulate_seconds}};
  }
  return row;
}

}  // namespace

std::string SimJson(const SimOptions& options, const SimReport& report) {
  Json json = ResultsHead(ConfigJson(options, report));
  json["network"] = NetworkJson(options.network);
  json["results"] = Json::array();
  for (const SimResult& result : report.results) {
    json["results"].push_back(ResultJson(options, result));
  }
  json["errors"] = ErrorsJson(report.ErrorsSoFar());
  return ResultsText(json);
}

}  // namespace sluice::bench
