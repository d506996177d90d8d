// The table, and the results file.
#include "checkpoint/report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "report/spread.h"

namespace sluice::bench {
namespace {

using Stats = CheckpointStats;

using R = CheckpointResult;

template <typename T>
auto Of(T Stats::*field) {
  return [field](const R& r) { return r.stats.*field; };
}
// Null of other ways.
auto OfOurs(int64_t Stats::*field) {
  return [field](const R& r) { return r.is_other ? Json() : Json(r.stats.*field); };
}
auto Seconds(absl::Duration Stats::*field) {
  return [field](const R& r) { return absl::ToDoubleSeconds(r.stats.*field); };
}

double MedianOf(const R& r) { return Median(r.seconds); }
double Rate(const R& r) { return GbPerSecond(r.stats.file_bytes, 1e6 * MedianOf(r)); }
Json WrongOf(const R& r) { return r.checked ? Json(r.wrong) : Json(); }
std::string RatioText(const R& r) {
  if (!r.is_other) return "";
  return absl::StrFormat("%.2f [%.2f .. %.2f]", r.ratio.median, r.ratio.p25, r.ratio.p75);
}

Columns<R> CheckpointColumns(bool with_ratio) {
  return {{"case", &R::mode, {"mode", "", 5}},
          {"tensors", Of(&Stats::tensors), {"tensors", "", 8}},
          {"tensors_ignored", Of(&Stats::tensors_ignored)},
          {"files", Of(&Stats::files), {"files", "", 6}},
          {"pieces", Of(&Stats::file_pieces)},
          {"bytes",
           Of(&Stats::file_bytes),
           {.head = "bytes", .width = 9, .unit_of_cell = Unit::kBytes}},
          {"bytes_read",
           OfOurs(&Stats::bytes_read),
           {.head = "read", .width = 9, .unit_of_cell = Unit::kBytes}},
          {"header_bytes", Of(&Stats::header_bytes)},
          {"delivered_bytes", Of(&Stats::bytes)},
          {"sent_bytes",
           OfOurs(&Stats::sent_bytes),
           {.head = "sent", .width = 9, .unit_of_cell = Unit::kBytes}},
          {"retries", Of(&Stats::retries)},
          {"time_us", [](const R& r) { return TimesJson(Microseconds(r.seconds)); }},
          {"iterations_us", [](const R& r) { return Microseconds(r.seconds); }},
          {"",
           [](const R& r) { return 1e6 * MedianOf(r); },
           {.head = "time", .width = 9, .unit_of_cell = Unit::kMicroseconds}},
          {"gb_per_s", Rate, {"GB/s", "", 7, 3}},
          {"checked", &R::checked},
          {"sampled", &R::sampled},
          {"wrong", &R::wrong},
          {"", WrongOf, {"#wrong", "", 6}},
          {"peak/slots", Of(&Stats::slots_peak)},
          {"peak/bytes",
           OfOurs(&Stats::budget_bytes_peak),
           {.head = "staging at once", .width = 21, .unit_of_cell = Unit::kBytes}},
          {"limit/slots", Of(&Stats::slots_max)},
          {"limit/bytes", Of(&Stats::budget_bytes), kLimit},
          {"stage_s/plan", Seconds(&Stats::planning)},
          {"stage_s/read", Seconds(&Stats::reading)},
          {"stage_s/exchange", Seconds(&Stats::exchanging)},
          {"stage_s/copy", Seconds(&Stats::copying)},
          {"stage_s/write", Seconds(&Stats::writing)},
          {"stage_s/sync", Seconds(&Stats::syncing)},
          {"", RatioText, with_ratio ? Shown{"ratio", "", 19} : Shown{}}};
}

std::vector<BaselineResult> BaselinesOf(const R& r) {
  std::vector<BaselineResult> all;
  all.reserve(r.others.size());
  for (const R& way : r.others) {
    all.push_back({way.mode, way.reason, 1e6 * MedianOf(way), Rate(way), way.ratio, way.wrong,
                   Microseconds(way.seconds)});
  }
  return all;
}

}  // namespace

void AddIteration(absl::Span<const CheckpointRecord> records, bool timed,
                  CheckpointResult* result) {
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
  if (timed) result->seconds.push_back(absl::ToDoubleSeconds(sum.seconds));
  result->stats = sum;
}

std::string TableHeader(const CheckpointBenchOptions& options, const CheckpointReport& report) {
  const bool with_ratio = !options.baselines.empty();
  return absl::StrCat(
      FirstLines("checkpoint", "", report),
      OptionLines({}, Config(options), Config(CheckpointBenchOptions())),
      "# bytes: of the tensors in files; read: asked of storage, beside headers; "
      "time: of the call, median\n",
      "# staging at once: most of any rank, of its limit; #wrong: - if nothing was compared\n",
      with_ratio ? "# ratio: time over that of load, median and quartiles of the rounds\n" : "",
      "#\n", CheckpointColumns(with_ratio).TableHead());
}

std::string TableRows(const CheckpointResult& r) {
  std::string text = CheckpointColumns(false).TableRow(r);
  for (const R& way : r.others) {
    absl::StrAppend(&text, way.reason.empty()
                               ? CheckpointColumns(true).TableRow(way)
                               : absl::StrCat("# ", way.mode, ": ", way.reason, "\n"));
  }
  return text;
}

std::string JsonText(const CheckpointBenchOptions& options, const CheckpointReport& report) {
  Json config;
  for (const auto& [name, value] : Config(options)) config[name] = value;
  AddJob(report, &config);
  Json json = ResultsHead(std::move(config));
  json["results"] = Json::array();
  for (const CheckpointResult& result : report.results) {
    json["results"].push_back(CheckpointColumns(false).ToJson(result));
    AddBaselines(BaselinesOf(result), &json["results"].back());
  }
  json["errors"] = ErrorsJson(report.ErrorsSoFar());
  return ResultsText(json);
}

}  // namespace sluice::bench
