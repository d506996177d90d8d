// Errors, and the frame of a results file.
#include "job/job_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "job/built_with.h"
#include "tensor/quoted.h"

namespace sluice::bench {

using Json = nlohmann::ordered_json;

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

Json ResultsHead(Json config) {
  Json json = {{"version", SLUICE_VERSION}, {"built_with", BuiltWith()}};
  json["config"] = std::move(config);
  return json;
}

std::string ResultsText(const Json& results) {
  return results.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
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
