// The results file.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/report.h"

namespace sluice::bench {
namespace {

using ReportJson = nlohmann::ordered_json;

ReportJson TimesOf(const std::vector<double>& seconds) {
  const auto [min, max] = std::minmax_element(seconds.begin(), seconds.end());
  return TimesJson({.min = 1e6 * *min, .median = 1e6 * MedianSeconds(seconds), .max = 1e6 * *max});
}

ReportJson InMicroseconds(const std::vector<double>& seconds) {
  ReportJson all = ReportJson::array();
  for (const double s : seconds) all.push_back(s * 1e6);
  return all;
}

void AddBaselines(const CheckpointResult& r, ReportJson* json) {
  if (r.others.empty()) return;
  ReportJson all = ReportJson::object();
  ReportJson reasons = ReportJson::object();
  for (const OtherWay& way : r.others) {
    if (!way.reason.empty()) {
      all[way.name] = nullptr;
      reasons[way.name] = way.reason;
      continue;
    }
    const TimeRatio ratio = RatioOf(way, r);
    all[way.name] = {{"time_us", MedianSeconds(way.seconds) * 1e6},
                     {"gb_per_s", GbPerS(r, way.seconds)},
                     {"ratio", ratio.medians},
                     {"ratio_p25", ratio.p25},
                     {"ratio_p75", ratio.p75},
                     {"wrong", way.wrong},
                     {"iterations_us", InMicroseconds(way.seconds)}};
  }
  (*json)["baselines"] = all;
  if (!reasons.empty()) (*json)["baseline_reasons"] = reasons;
}

ReportJson ResultJson(const CheckpointResult& r) {
  const CheckpointStats& s = r.stats;
  ReportJson json = {{"case", r.mode},
                     {"tensors", s.tensors},
                     {"tensors_ignored", s.tensors_ignored},
                     {"files", s.files},
                     {"pieces", s.file_pieces},
                     {"bytes", s.file_bytes},
                     {"bytes_read", s.bytes_read},
                     {"header_bytes", s.header_bytes},
                     {"delivered_bytes", s.bytes},
                     {"sent_bytes", s.sent_bytes},
                     {"retries", s.retries},
                     {"time_us", TimesOf(r.seconds)},
                     {"iterations_us", InMicroseconds(r.seconds)},
                     {"gb_per_s", GbPerS(r, r.seconds)},
                     {"checked", r.checked},
                     {"sampled", r.sampled},
                     {"wrong", r.wrong},
                     {"peak", {{"slots", s.slots_peak}, {"bytes", s.budget_bytes_peak}}},
                     {"limit", {{"slots", s.slots_max}, {"bytes", s.budget_bytes}}},
                     {"stage_s",
                      {{"plan", absl::ToDoubleSeconds(s.planning)},
                       {"read", absl::ToDoubleSeconds(s.reading)},
                       {"exchange", absl::ToDoubleSeconds(s.exchanging)},
                       {"copy", absl::ToDoubleSeconds(s.copying)},
                       {"write", absl::ToDoubleSeconds(s.writing)},
                       {"sync", absl::ToDoubleSeconds(s.syncing)}}}};
  AddBaselines(r, &json);
  return json;
}

}  // namespace

std::string JsonText(const CheckpointBenchOptions& options, const CheckpointReport& report) {
  ReportJson config;
  for (const auto& [name, value] : Config(options)) config[name] = value;
  config["world"] = report.world;
  config["hosts"] = report.hosts.size();
  config["host_names"] = report.hosts;
  config["mpi"] = report.mpi;
  ReportJson json = ResultsHead(std::move(config));
  json["results"] = ReportJson::array();
  for (const CheckpointResult& result : report.results) {
    json["results"].push_back(ResultJson(result));
  }
  json["errors"] = ErrorsJson(report.ErrorsSoFar());
  return ResultsText(json);
}

}  // namespace sluice::bench
