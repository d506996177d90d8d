// Errors, and the frame of a results file.
#include "report/report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "job/built_with.h"
#include "tensor/quoted.h"
#include "workload/numbers.h"

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

std::string BudgetWords(absl::Span<const BudgetRun> runs) {
  std::string text;
  for (const BudgetRun& run : runs) {
    absl::StrAppend(&text,
                    run.limit_buckets == 0
                        ? "Without a budget the busiest rank needs "
                        : absl::StrCat("With a budget of ", run.limit_buckets, " it needs "),
                    run.peak_buckets, " buckets");
    // Where bytes go from tensor to tensor, buckets are no memory.
    if (run.peak_bytes > 0) absl::StrAppend(&text, " and ", BytesName(run.peak_bytes));
    absl::StrAppend(&text, " at once");
    if (&run != runs.data() && runs[0].time_us > 0) {
      absl::StrAppendFormat(&text, ", and %.2f times the time", run.time_us / runs[0].time_us);
    }
    absl::StrAppend(&text, ".\n");
  }
  return text;
}

void AddBaselines(const std::vector<BaselineResult>& baselines, Json* result) {
  Json reasons;
  for (const BaselineResult& b : baselines) {
    Json& figures = (*result)["baselines"][b.name];
    if (!b.reason.empty()) {
      reasons[b.name] = b.reason;
      continue;
    }
    figures = {{"time_us", b.time_us},     {"gb_per_s", b.gb_per_s},   {"ratio", b.ratio.median},
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

std::string OptionLines(std::vector<std::string> first, const FlagConfig& given,
                        const FlagConfig& usual) {
  for (size_t i = 0; i < given.size(); ++i) {
    const auto& [name, value] = given[i];
    if (given[i] == usual[i]) continue;
    const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    first.push_back(absl::StrCat(name, "=", Escaped(shown)));
  }
  std::string text;
  size_t width = kTableWidth;
  for (const std::string& part : first) {
    if (width + 1 + part.size() > kTableWidth) {
      absl::StrAppend(&text, text.empty() ? "#" : "\n#");
      width = 1;
    }
    absl::StrAppend(&text, " ", part);
    width += 1 + part.size();
  }
  return text.empty() ? text : text + "\n";
}

std::string RowOfCase(const std::string& row, const std::string& name) {
  const std::string shown = Escaped(name);
  if (row.size() + 1 + shown.size() > kTableWidth) return absl::StrCat("# ", shown, "\n", row);
  return absl::StrCat(row.substr(0, row.size() - 1), "  ", shown, "\n");
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
