// The results file.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "stream/overlap.h"
#include "stream/report.h"

namespace sluice::bench {
namespace {

using Json = nlohmann::ordered_json;

Json ConfigJson(const StreamBenchOptions& o, const StreamReport& report) {
  Json baselines = Json::array();
  for (size_t i = 1; i < o.modes.size(); ++i) baselines.push_back(o.modes[i].Name());
  return {{"source", o.source},
          {"format", o.format},
          {"items", o.items},
          {"item_bytes", o.item_bytes},
          {"connections", o.connections},
          {"generate_ms", o.generate_ms},
          {"generate_order", o.generate_order.empty() ? Json() : Json(o.generate_order)},
          {"generate_ahead", o.generate_ahead},
          {"generator_threads", o.generator_threads},
          {"latency_ms", o.latency_ms},
          {"jitter", o.jitter},
          {"tail_percent", o.tail_percent},
          {"tail_factor", o.tail_factor},
          {"fault", o.fault},
          {"read_ahead", o.read_ahead},
          {"budget_bytes", o.budget_bytes},
          {"slots", o.slots},
          {"piece_bytes", o.piece_bytes},
          {"device_buffers", o.device_buffers},
          {"device", o.device},
          {"device_gb_per_s", o.device_gb_per_s},
          {"batch", o.batch},
          {"order", o.order},
          {"hedge", o.hedge},
          {"exchange", o.exchange},
          {"share", o.share},
          {"attempts", o.attempts},
          {"request_timeout_s", o.request_timeout_s},
          {"transform", TransformText(TransformFlagsOf(o))},
          {"progress_thread", o.progress_thread},
          {"timeout_s", o.timeout_s},
          {"epochs", o.epochs},
          {"shuffle", o.shuffle ? 1 : 0},
          {"shuffle_block_items", o.shuffle_block_items},
          {"seed", o.seed},
          {"cursor", o.cursor},
          {"stop_items", o.stop_items},
          {"consume_us", o.consume_us},
          {"touch", o.touch},
          {"check", static_cast<int>(o.check)},
          {"fill_seed", o.fill_seed},
          {"corrupt", o.corrupt},
          {"grow", o.grow_bytes},
          {"iters", o.iterations},
          {"baselines", baselines},
          {"world", report.world},
          {"hosts", report.hosts.size()},
          {"host_names", report.hosts},
          {"mpi", report.mpi}};
}

// The median is the round that all other figures are of.
Json TimesOf(const Result& result) {
  const auto [min, max] = std::minmax_element(result.all_seconds.begin(), result.all_seconds.end());
  return TimesJson({.min = 1e6 * *min, .median = 1e6 * result.total.seconds, .max = 1e6 * *max});
}

Json MicrosecondsOf(const std::vector<double>& seconds) {
  Json all = Json::array();
  for (const double s : seconds) all.push_back(1e6 * s);
  return all;
}

Json OrNull(absl::optional<double> value) { return value ? Json(*value) : Json(); }

Json TraceJson(const StreamBenchOptions& options, const StreamReport& report) {
  const RankOutcome& ours = report.results.front().total;
  return {{"file", options.trace_file},
          {"bytes", report.trace.bytes},
          {"epochs", std::min(options.epochs, TracedEpochs(options))},
          {"spans_left_out", ours.trace_left_out},
          {"events_dropped", report.trace.dropped}};
}

Json ResultJson(const StreamBenchOptions& options, int world, const Result& result) {
  const std::optional<int64_t> allowed = AllowedGrowth(options, result);
  const RankOutcome& t = result.total;
  Json json = {{"case", result.mode},
               {"time_us", TimesOf(result)},
               {"gb_per_s", GbPerSecond(t.bytes, 1e6 * t.seconds)},
               {"items", t.items},
               {"bytes", t.bytes},
               {"stall_share", result.stall_share},
               {"first_item_s", t.first_item_s},
               {"half_s", t.half_s},
               {"requests", t.requests},
               {"bytes_read", t.bytes_read},
               {"sequential_bytes", OrNull(SequentialBytes(t))},
               {"overlap", OrNull(OverlapOf(t))},
               {"opens", t.opens},
               {"connections", t.connections},
               {"hedges", t.hedges},
               {"hedges_won", t.hedges_won},
               {"retries", t.retries},
               {"wrong", t.wrong},
               {"bytes_copied", t.bytes_copied},
               {"cpu_s", t.cpu_s},
               {"cpu_s_per_gib", CpuPerGiB(t)},
               {"major_faults", t.major_faults},
               {"peak", {{"slots", t.peak_slots}, {"bytes", t.peak_bytes}}},
               {"limit", {{"slots", t.limit_slots}, {"bytes", t.limit_bytes}}},
               {"device_bytes", t.device_bytes},
               {"memory",
                {{"growth_bytes", t.grown_bytes < 0 ? Json() : Json(t.grown_bytes)},
                 {"allowed_bytes", allowed ? Json(*allowed) : Json()},
                 {"rank", t.grown_rank},
                 {"method", t.grown_by}}},
               {"stage_s",
                {{"read", t.stage_s.read},
                 {"exchange", t.stage_s.exchange},
                 {"copy", t.stage_s.copy},
                 {"consume", t.stage_s.consume},
                 {"wait", t.stage_s.wait}}},
               {"iterations_us", MicrosecondsOf(result.all_seconds)}};
  if (options.is_generator()) {
    json["speed_up"] = SpeedUp(options, world, result);
    json["speed_up_ideal"] = SpeedUpIdeal(options, world);
    json["staleness_max"] = t.staleness_max;
    json["item_hash"] = absl::StrCat(absl::Hex(t.item_hash, absl::kZeroPad16));
  }
  if (!t.cursor.empty()) json["cursor"] = t.cursor;
  return json;
}

}  // namespace

std::string StreamJsonText(const StreamBenchOptions& options, const StreamReport& report) {
  Json json = ResultsHead(ConfigJson(options, report));
  json["results"] = Json::array();
  for (const Result& result : report.results) {
    json["results"].push_back(ResultJson(options, report.world, result));
  }
  if (report.trace.bytes > 0 && !report.results.empty()) json["trace"] = TraceJson(options, report);
  json["errors"] = ErrorsJson(report.ErrorsSoFar());
  return ResultsText(json);
}

}  // namespace sluice::bench
