// Errors, and the frame of a results file.
#include "report/report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/built_with.h"
#include "tensor/quoted.h"

namespace sluice::bench {

std::vector<JobError> JobReport::ErrorsSoFar() const {
  std::vector<JobError> all = errors;
  if (!finished) all.push_back({"", "the run has not ended"});
  return all;
}

Json TimesJson(const ResultTimes& times) {
  Json json = {{"min", times.min}, {"median", times.median}};
  if (times.p99) json["p99"] = *times.p99;
  json["max"] = times.max;
  return json;
}

Json TimesJson(const std::vector<double>& all_us) {
  const auto [min, max] = std::minmax_element(all_us.begin(), all_us.end());
  return TimesJson({.min = *min, .median = Median(all_us), .max = *max});
}

std::vector<double> Microseconds(std::vector<double> seconds) {
  for (double& each : seconds) each *= 1e6;
  return seconds;
}

double GbPerSecond(int64_t payload_bytes, double median_us) {
  return median_us > 0 ? static_cast<double>(payload_bytes) / median_us / 1e3 : 0;
}

Json ErrorsJson(const std::vector<JobError>& errors) {
  Json json = Json::array();
  for (const JobError& error : errors) {
    json.push_back({{"case", error.id}, {"message", error.message}});
  }
  return json;
}

void AddBaselines(const std::vector<BaselineResult>& baselines, Json* result) {
  Json reasons;
  for (const BaselineResult& b : baselines) {
    Json& figures = (*result)["baselines"][b.name];
    if (!b.reason.empty()) {
      reasons[b.name] = b.reason;
      continue;
    }
    figures = {{"time_us", b.time_us},     {"gb_per_s", b.gb_per_s},   {"ratio", b.ratio.medians},
               {"ratio_p25", b.ratio.p25}, {"ratio_p75", b.ratio.p75}, {"wrong", b.wrong}};
    if (!b.iterations_us.empty()) figures["iterations_us"] = b.iterations_us;
  }
  if (!reasons.is_null()) (*result)["baseline_reasons"] = reasons;
}

void AddJob(const JobReport& report, Json* config) {
  (*config)["world"] = report.world;
  (*config)["hosts"] = report.hosts.size();
  (*config)["host_names"] = report.hosts;
  (*config)["mpi"] = report.mpi;
}

Json ResultsHead(Json config) {
  Json json = {{"version", SLUICE_VERSION}, {"built_with", BuiltWith()}};
  json["config"] = std::move(config);
  return json;
}

std::string ResultsText(const Json& results) {
  return results.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string FirstLines(const std::string& command, const std::string& more,
                       const JobReport& report) {
  return absl::StrCat("# sluice-bench ", command, " ", SLUICE_VERSION, " (", BuiltWith(), ")", more,
                      "\n#\n# ", report.world, report.world == 1 ? " rank on " : " ranks on ",
                      report.hosts.size(), report.hosts.size() == 1 ? " host: " : " hosts: ",
                      absl::StrJoin(report.hosts, ","), "; ", report.mpi, "\n");
}

std::string ErrorLines(const JobReport& report) {
  std::string text;
  for (const JobError& error : report.errors) {
    absl::StrAppend(&text,
                    "# error: ", error.id.empty() ? "" : absl::StrCat(Escaped(error.id), ": "),
                    error.message, "\n");
  }
  return text;
}

}  // namespace sluice::bench
