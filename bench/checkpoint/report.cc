// Adding up, and writing.
#include "checkpoint/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "job/built_with.h"

namespace sluice::bench {
namespace {

using Json = nlohmann::ordered_json;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Of the tensors, as they lie in files.
double BytesPerSecond(const CheckpointResult& r) {
  return static_cast<double>(r.stats.file_bytes) / Median(r.seconds);
}

Json ResultJson(const CheckpointResult& r) {
  const CheckpointStats& s = r.stats;
  return {{"mode", r.mode},
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
          {"seconds",
           {{"min", *std::min_element(r.seconds.begin(), r.seconds.end())},
            {"median", Median(r.seconds)},
            {"max", *std::max_element(r.seconds.begin(), r.seconds.end())}}},
          {"bytes_per_s", BytesPerSecond(r)},
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
}

}  // namespace

void AddIteration(absl::Span<const CheckpointRecord> records, CheckpointResult* result) {
  CheckpointStats sum;
  for (const CheckpointRecord& record : records) {
    const CheckpointStats& s = record.stats;
    for (const auto field :
         {&CheckpointStats::pieces, &CheckpointStats::file_pieces, &CheckpointStats::file_bytes,
          &CheckpointStats::bytes_read, &CheckpointStats::header_bytes, &CheckpointStats::bytes,
          &CheckpointStats::sent_bytes, &CheckpointStats::retries}) {
      sum.*field += s.*field;
    }
    for (const auto field :
         {&CheckpointStats::tensors, &CheckpointStats::tensors_ignored, &CheckpointStats::files,
          &CheckpointStats::slots_max, &CheckpointStats::slots_peak, &CheckpointStats::budget_bytes,
          &CheckpointStats::budget_bytes_peak, &CheckpointStats::piece_bytes}) {
      sum.*field = std::max(sum.*field, s.*field);
    }
    for (const auto field :
         {&CheckpointStats::seconds, &CheckpointStats::planning, &CheckpointStats::reading,
          &CheckpointStats::exchanging, &CheckpointStats::copying, &CheckpointStats::writing,
          &CheckpointStats::syncing}) {
      sum.*field = std::max(sum.*field, s.*field);
    }
    result->wrong += record.wrong;
  }
  result->seconds.push_back(absl::ToDoubleSeconds(sum.seconds));
  result->stats = sum;
}

std::string TableHeader(const CheckpointBenchOptions& options, const CheckpointReport& report) {
  std::string text =
      absl::StrCat("# sluice-bench checkpoint ", SLUICE_VERSION, " (", BuiltWith(), ")\n#\n# ",
                   report.world, " ranks on ", absl::StrJoin(report.hosts, ","), "\n#");
  for (const auto& [name, value] : Config(options)) {
    if (!value.empty()) absl::StrAppend(&text, " ", name, "=", value);
  }
  absl::StrAppend(
      &text,
      "\n# bytes: of the tensors in files; read: asked of storage, beside headers; "
      "time: the whole call, median\n",
      "# peak: most staging of any rank / limit; 1 GB = 10^9 bytes\n#\n",
      absl::StrFormat("#%5s %8s %6s %14s %14s %14s %10s %9s %8s %24s\n", "mode", "tensors", "files",
                      "bytes", "read", "sent", "time", "rate", "#wrong", "peak"),
      absl::StrFormat("#%5s %8s %6s %14s %14s %14s %10s %9s %8s %24s\n", "", "", "", "(B)", "(B)",
                      "(B)", "(s)", "(GB/s)", "", "(B)"));
  return text;
}

std::string TableRow(const CheckpointResult& r) {
  const CheckpointStats& s = r.stats;
  return absl::StrFormat(" %5s %8d %6d %14d %14d %14d %10.4f %9.3f %8d %24s\n", r.mode, s.tensors,
                         s.files, s.file_bytes, s.bytes_read, s.sent_bytes, Median(r.seconds),
                         BytesPerSecond(r) / 1e9, r.wrong,
                         absl::StrCat(s.budget_bytes_peak, "/", s.budget_bytes));
}

std::string JsonText(const CheckpointBenchOptions& options, const CheckpointReport& report) {
  Json config;
  for (const auto& [name, value] : Config(options)) config[name] = value;
  config["world"] = report.world;
  config["hosts"] = report.hosts.size();
  Json json = ResultsHead(std::move(config));
  json["results"] = Json::array();
  for (const CheckpointResult& result : report.results) {
    json["results"].push_back(ResultJson(result));
  }
  json["errors"] = Json::array();
  for (const JobError& error : report.ErrorsSoFar()) json["errors"].push_back(error.message);
  return ResultsText(json);
}

}  // namespace sluice::bench
