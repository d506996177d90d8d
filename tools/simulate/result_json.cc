// The results file of `sluice-sim peak` and `scale`.
#include <utility>

#include "absl/strings/str_cat.h"
#include "simulate/result.h"

namespace sluice::bench {
namespace {

using SimJsonValue = nlohmann::ordered_json;

SimJsonValue NetworkJson(const sim::NetworkModel& network) {
  SimJsonValue json = {{"port_rate", network.port_rate},
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

SimJsonValue ConfigJson(const SimOptions& options, const SimReport& report) {
  SimJsonValue config = report.what;
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

// One run in simulated time: its least, median and most are one.
SimJsonValue TimeJson(const SimResult& r) {
  return TimesJson({.min = r.makespan_us, .median = r.makespan_us, .max = r.makespan_us});
}

SimJsonValue ResultJson(const SimOptions& options, const SimResult& r) {
  SimJsonValue row;
  row["family"] = r.family;
  row["case"] =
      absl::StrCat(r.family, options.budgets.size() > 1 ? absl::StrCat("/budget-", r.budget) : "");
  row["ranks"] = r.ranks;
  row["budget"] = r.budget;
  if (options.bucket_bytes == 0) row["bucket_bytes"] = r.bucket_bytes;
  row["max_in_flight"] = r.max_in_flight;
  row["look_ahead"] = r.look_ahead;
  row["peak"] = {{"max", r.peak_max},
                 {"median", r.peak_median},
                 {"mean", r.peak_mean},
                 {"bytes_max", r.peak_bytes_max},
                 {"ops_max", r.peak_operations_max}};
  row["channels_max"] = r.channels_max;
  row["buckets"] = r.buckets;
  row["payload_bytes"] = r.payload_bytes;
  // Of a run that did not end nobody knows them.
  const bool ended = !r.stalled && !r.stopped;
  row["time_us"] = ended ? TimeJson(r) : SimJsonValue();
  row["gb_per_s"] =
      ended ? SimJsonValue(GbPerSecond(r.payload_bytes, r.makespan_us)) : SimJsonValue();
  row["ratio_to_link_bound"] = r.ratio_to_link_bound;
  row["ratio_to_no_budget"] =
      r.ratio_to_no_budget ? SimJsonValue(*r.ratio_to_no_budget) : SimJsonValue();
  row["waits"] = {{"budget", r.waits_for_budget}, {"channel", r.waits_for_channel}};
  row["held"] = {
      {"copies", r.held_by_copies}, {"partner", r.held_by_partner}, {"wire", r.held_by_wire}};
  row["stalled"] = r.stalled;
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
  SimJsonValue json = ResultsHead(ConfigJson(options, report));
  json["network"] = NetworkJson(options.network);
  json["results"] = SimJsonValue::array();
  for (const SimResult& result : report.results) {
    json["results"].push_back(ResultJson(options, result));
  }
  json["errors"] = ErrorsJson(report.ErrorsSoFar());
  return ResultsText(json);
}

}  // namespace sluice::bench
