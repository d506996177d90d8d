// The columns of results, and the results file.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "stream/report.h"

namespace sluice::bench {
namespace {

Json ConfigJson(const StreamBenchOptions& options, const StreamReport& report) {
  Json config;
  for (const auto& [name, value] : StreamConfig(options)) config[name] = value;
  AddJob(report, &config);
  return config;
}

Json TraceJson(const StreamBenchOptions& options, const StreamReport& report) {
  const RankOutcome& ours = report.results.front().total;
  return {{"file", options.trace_file},
          {"bytes", report.trace.bytes},
          {"epochs", std::min(options.stream.order.epochs, TracedEpochs(options))},
          {"spans_left_out", ours.stats.trace_left_out},
          {"events_dropped", report.trace.dropped}};
}

template <typename T>
auto Total(T RankOutcome::*field) {
  return [field](const Result& r) { return r.total.*field; };
}

auto Of(int64_t StreamStats::*field) {
  return [field](const Result& r) { return r.total.stats.*field; };
}

auto Seconds(absl::Duration StreamStats::*field) {
  return [field](const Result& r) { return absl::ToDoubleSeconds(r.total.stats.*field); };
}

double ItemsPerSecond(const Result& r) {
  return r.total.seconds > 0 ? static_cast<double>(r.total.stats.items) / r.total.seconds : 0;
}
double Rate(const Result& r) { return GbPerSecond(r.total.stats.bytes, 1e6 * r.total.seconds); }
double CpuOf(const Result& r) { return CpuPerGiB(r.total); }
Json OrNull(const absl::optional<double>& value) { return value ? Json(*value) : Json(); }
Json Overlap(const Result& r) { return OrNull(OverlapOf(r.total)); }
Json InOrder(const Result& r) { return OrNull(SequentialBytes(r.total)); }

// The median is the round that all other figures are of.
Json TimesOf(const Result& r) {
  const auto [min, max] = std::minmax_element(r.all_seconds.begin(), r.all_seconds.end());
  return TimesJson({.min = 1e6 * *min, .median = 1e6 * r.total.seconds, .max = 1e6 * *max});
}

// Nothing: nobody knows.
std::optional<int64_t> Growth(const Result& r) {
  return r.total.grown_bytes < 0 ? std::nullopt : std::optional(r.total.grown_bytes);
}

}  // namespace

Columns<Result> StreamColumns(const StreamBenchOptions& options) {
  using T = RankOutcome;
  using S = StreamStats;
  const auto allowed = [options](const Result& r) { return AllowedGrowth(options, r); };
  constexpr double kMiB = 1.0 / (1 << 20);
  return {
      {"case", &Result::mode, {"mode", "", 13}, Csv("mode")},
      {"", ItemsPerSecond, {"items/s", "", 10, 1}, Csv("items_per_s", 3)},
      {"time_us", TimesOf},
      {"gb_per_s", Rate, {"GB/s", "", 8, 3}, Csv("gb_per_s", 6)},
      {"items", Of(&S::items)},
      {"bytes", Of(&S::bytes)},
      {"stall_share", &Result::stall_share, {"stall", "(%)", 7, 1, 100}, Csv("stall_share", 6)},
      {"first_item_s",
       Seconds(&S::first_item),
       {"first", "(ms)", 10, 1, 1e3},
       Csv("first_ms", 3, 1e3)},
      {"half_s", Total(&T::half_s)},
      {"requests", Of(&S::requests), {"requests", "", 9}, Csv("requests")},
      {"bytes_read", Of(&S::bytes_read)},
      {"opens", Of(&S::opens)},
      {"connections", Of(&S::connections)},
      {"hedges", Of(&S::hedges), {"hedges", "", 7}, Csv("hedges")},
      {"hedges_won", Of(&S::hedges_won)},
      {"retries", Of(&S::retries), {"retries", "", 8}, Csv("retries")},
      {"peak/slots", Of(&S::slots_peak), {"slots", "(peak/lim)", 11}, Csv("peak_slots")},
      {"limit/slots", Of(&S::slots_max), kLimit, Csv("limit_slots")},
      {"peak/bytes",
       Of(&S::budget_bytes_peak),
       {"MiB", "(peak/lim)", 16, 1, kMiB},
       Csv("peak_bytes")},
      {"limit/bytes", Of(&S::budget_bytes), kLimit, Csv("limit_bytes")},
      {"device_bytes", Of(&S::device_bytes)},
      {"memory/growth_bytes",
       Growth,
       {"memory", "(grown/may)", 16, 1, kMiB, "N/A"},
       Csv("memory_grown")},
      {"memory/allowed_bytes", allowed, kLimit, Csv("memory_allowed")},
      {"memory/rank", Total(&T::grown_rank)},
      {"memory/method", Total(&T::grown_by)},
      {"wrong", Total(&T::wrong), {}, Csv("wrong")},
      {"cpu_s", Total(&T::cpu_s)},
      {"cpu_s_per_gib", CpuOf, {"CPU", "(s/GiB)", 7, 3}, Csv("cpu_s_per_gib", 4)},
      {"bytes_copied", Of(&S::bytes_copied), {"copied", "(MiB)", 9, 1, kMiB}, Csv("bytes_copied")},
      {"major_faults", Total(&T::major_faults), {"faults", "(major)", 7}, Csv("major_faults")},
      {"overlap", Overlap, {"overlap", "(%)", 8, 1, 100}, Csv("overlap", 6)},
      {"sequential_bytes",
       InOrder,
       {"in order", "(KiB)", 9, 1, 1.0 / 1024},
       Csv("sequential_bytes")},
      {"", Total(&T::wrong), {"#wrong", "", 8}},
      {"stage_s/read", Seconds(&S::reading)},
      {"stage_s/exchange", Seconds(&S::exchanging)},
      {"stage_s/copy", Seconds(&S::copying)},
      {"stage_s/consume", Seconds(&S::consuming)},
      {"stage_s/wait", Total(&T::wait_s)},
      {"iterations_us", [](const Result& r) { return Microseconds(r.all_seconds); }}};
}

std::string StreamJsonText(const StreamBenchOptions& options, const StreamReport& report) {
  Json json = ResultsHead(ConfigJson(options, report));
  json["results"] = Json::array();
  for (const Result& result : report.results) {
    Json row = StreamColumns(options).ToJson(result);
    if (options.is_generator()) {
      row["speed_up"] = SpeedUp(options, report.world, result);
      row["speed_up_ideal"] = SpeedUpIdeal(options, report.world);
      row["staleness_max"] = result.total.stats.staleness_max;
      row["item_hash"] = absl::StrCat(absl::Hex(result.total.item_hash, absl::kZeroPad16));
    }
    if (!result.total.cursor.empty()) row["cursor"] = result.total.cursor;
    json["results"].push_back(row);
  }
  if (report.trace.bytes > 0 && !report.results.empty()) json["trace"] = TraceJson(options, report);
  json["errors"] = ErrorsJson(report.ErrorsSoFar());
  return ResultsText(json);
}

}  // namespace sluice::bench
