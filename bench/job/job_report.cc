// Errors, and the frame of a results file.
#include "job/job_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "job/built_with.h"

namespace sluice::bench {

using Json = nlohmann::ordered_json;

std::vector<JobError> JobReport::ErrorsSoFar() const {
  std::vector<JobError> all = errors;
  if (!finished) all.push_back({"", "the run has not ended"});
  return all;
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
    absl::StrAppend(&text, "# error: ", error.id.empty() ? "" : absl::StrCat(error.id, ": "),
                    error.message, "\n");
  }
  return text;
}

}  // namespace sluice::bench
