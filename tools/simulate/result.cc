// Sums and orders of what ranks saw, as a table and as CSV.
#include "simulate/result.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "report/spread.h"

namespace sluice::bench {
namespace {

using sim::HeldCause;
using sim::TimePs;
using sim::WaitCause;

constexpr double kPsPerUs = 1e6;

template <typename Value>
int64_t MaxOf(const std::vector<sim::RankOutcome>& ranks, Value sim::RankOutcome::*value) {
  int64_t most = 0;
  for (const sim::RankOutcome& rank : ranks) most = std::max<int64_t>(most, rank.*value);
  return most;
}

// Null: there is none.
Json BudgetOf(const SimResult& r) { return r.budget == 0 ? Json() : Json(r.budget); }

// Of a run that did not end nobody knows them.
bool HasEnded(const SimResult& r) { return !r.stalled && !r.stopped; }
Json TimeOf(const SimResult& r) {
  return HasEnded(r) ? TimesJson(std::vector<double>{r.makespan_us}) : Json();
}
Json RateOf(const SimResult& r) {
  return HasEnded(r) ? Json(GbPerSecond(r.payload_bytes, r.makespan_us)) : Json();
}

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

const Columns<SimResult>& SimColumns() {
  using R = SimResult;
  static const auto* const kColumns = new Columns<R>{
      {"family", &R::family, {}, Csv("family")},
      {"ranks", &R::ranks, {"ranks", "", 7}, Csv("ranks")},
      {"budget", &R::budget, {}, Csv("budget")},
      {"", BudgetOf, {"budget", "", 7, 0, 1, "none"}},
      {"max_in_flight", &R::max_in_flight, {}, Csv("max_in_flight")},
      {"look_ahead", &R::look_ahead},
      {"peak/max", &R::peak_max, {"peak", "(max)", 7}, Csv("peak_max")},
      {"peak/median", &R::peak_median, {}, Csv("peak_median", 1)},
      {"peak/mean", &R::peak_mean, {}, Csv("peak_mean", 3)},
      {"peak/bytes_max",
       &R::peak_bytes_max,
       {.head = "staging", .unit = "(max)", .width = 10, .unit_of_cell = Unit::kBytes},
       Csv("peak_bytes_max")},
      {"peak/ops_max", &R::peak_operations_max, {}, Csv("peak_operations_max")},
      {"channels_max", &R::channels_max, {}, Csv("channels_max")},
      {"buckets", &R::buckets, {"buckets", "", 10}, Csv("buckets")},
      {"payload_bytes", &R::payload_bytes},
      {"",
       &R::makespan_us,
       {.head = "time", .width = 10, .unit_of_cell = Unit::kMicroseconds},
       Csv("makespan_us", 6)},
      {"time_us", TimeOf},
      {"gb_per_s", RateOf},
      {"ratio_to_link_bound",
       &R::ratio_to_link_bound,
       {"/link", "", 8, 3},
       Csv("ratio_to_link_bound", 6)},
      {"ratio_to_no_budget",
       &R::ratio_to_no_budget,
       {"/free", "", 8, 3},
       Csv("ratio_to_no_budget", 6)},
      {"waits/budget",
       &R::waits_for_budget,
       {"wait%", "budget", 7, 1, 100},
       Csv("waits_for_budget", 6)},
      {"waits/channel", &R::waits_for_channel, {}, Csv("waits_for_channel", 6)},
      {"held/copies", &R::held_by_copies, {}, Csv("held_by_copies", 6)},
      {"held/partner", &R::held_by_partner, {}, Csv("held_by_partner", 6)},
      {"held/wire", &R::held_by_wire, {}, Csv("held_by_wire", 6)},
      {"stalled", &R::stalled},
      {"", [](const R& r) { return r.stalled ? 1 : 0; }, {}, Csv("stalled")},
  };
  return *kColumns;
}

SimResult Summarize(const sim::SimulationOutcome& outcome) {
  SimResult result;
  std::vector<double> peaks;
  double rank_time = 0;
  for (const sim::RankOutcome& rank : outcome.ranks) {
    peaks.push_back(static_cast<double>(rank.peak_buckets));
    rank_time += static_cast<double>(rank.end);
  }
  const double ranks = static_cast<double>(std::max<size_t>(1, peaks.size()));
  result.ranks = static_cast<int>(outcome.ranks.size());
  result.peak_max = MaxOf(outcome.ranks, &sim::RankOutcome::peak_buckets);
  result.peak_mean = std::accumulate(peaks.begin(), peaks.end(), 0.0) / ranks;
  result.peak_median = Median(peaks);
  result.peak_bytes_max = MaxOf(outcome.ranks, &sim::RankOutcome::peak_bytes);
  result.peak_operations_max = MaxOf(outcome.ranks, &sim::RankOutcome::peak_operations);
  result.channels_max = MaxOf(outcome.ranks, &sim::RankOutcome::channels);
  result.makespan_us = static_cast<double>(outcome.makespan) / kPsPerUs;
  if (outcome.link_bound > 0) {
    result.ratio_to_link_bound =
        static_cast<double>(outcome.makespan) / static_cast<double>(outcome.link_bound);
  }
  const auto waited = [&](WaitCause cause) {
    const double time = static_cast<double>(outcome.waits[static_cast<size_t>(cause)]);
    return rank_time > 0 ? time / rank_time : 0;
  };
  result.waits_for_budget = waited(WaitCause::kBudget);
  result.waits_for_channel = waited(WaitCause::kChannel);
  const double held = std::accumulate(outcome.held.begin(), outcome.held.end(), 0.0);
  const auto spent = [&](HeldCause cause) {
    const double time = static_cast<double>(outcome.held[static_cast<size_t>(cause)]);
    return held > 0 ? time / held : 0;
  };
  result.held_by_copies = spent(HeldCause::kCopyQueue) + spent(HeldCause::kCopy);
  result.held_by_partner = spent(HeldCause::kPartner);
  result.held_by_wire = spent(HeldCause::kWire);
  result.stalled = outcome.stalled();
  result.stopped = outcome.stopped;
  return result;
}

void CompareWithNoBudget(std::vector<SimResult>* results) {
  for (SimResult& result : *results) {
    const auto free = std::find_if(results->begin(), results->end(), [&](const SimResult& other) {
      return other.budget == 0 && other.family == result.family && other.ranks == result.ranks &&
             !other.stopped && !other.stalled;
    });
    if (free == results->end() || result.stopped || result.stalled) continue;
    if (free->makespan_us > 0) result.ratio_to_no_budget = result.makespan_us / free->makespan_us;
  }
}

std::string SimTableHeader(const SimOptions& options) {
  return absl::StrCat(
      "# simulated; network model ", options.network.Describe(), "\n# bucket_bytes ",
      options.bucket_bytes, ", max_in_flight ", options.max_in_flight, " (0: automatic), plan ",
      options.plan, options.no_coalesce ? ", each chunk a bucket" : "", ", look_ahead at most ",
      options.look_ahead, ", start_skew_us ", options.start_skew_us, ", seed ", options.seed,
      "\n# peak, staging: buckets and bytes that the busiest rank holds at once; /link: time over "
      "that\n# of the busiest link; /free: over that without a budget; wait%: of ranks' time\n",
      SimColumns().TableHead());
}

std::string SimTableRow(const SimResult& r) {
  std::string row = RowOfCase(SimColumns().TableRow(r), r.family);
  row.insert(row.size() - 1,
             absl::StrCat(r.stalled ? "  STALLED" : "",
                          r.stopped ? "  STOPPED: what had happened until then" : ""));
  return row;
}

std::string SimCsv(const SimOptions& options, absl::Span<const SimResult> results) {
  std::string text = absl::StrCat("model,", SimColumns().CsvHead());
  for (const SimResult& r : results) {
    absl::StrAppend(&text, options.network.name, ",", SimColumns().CsvRow(r));
  }
  return text;
}

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
