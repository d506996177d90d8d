// The columns of results, and the results file.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reshard/report.h"

namespace sluice::bench {
namespace {

using R = CaseResult;

Json ConfigJson(const Options& options, const RunReport& report) {
  Json config;
  for (const auto& [name, value] : Knobs(options)) config[name] = value;
  for (const auto& [name, value] : Choices(options)) config[name] = value;
  config["fingerprint"] = options.fingerprint;
  config["plan_only"] = options.plan_only;
  config["coalesce"] = !options.no_coalesce;
  config["cases"] = options.cases_file;
  config["preset"] = options.preset;
  config["model"] = options.model_file;
  config["system"] = options.system_file;
  config["layers"] = options.cut.layers;
  config["scale"] = options.cut.scale;
  config["replicas"] = options.replicas;
  AddJob(report, &config);
  config["src_device"] = options.gpu.src_device;
  config["dst_device"] = options.gpu.dst_device;
  config["transport"] = TransportName(options, report);
  if (options.gpu.transport == "nccl") {
    config["max_channels_per_peer"] = options.gpu.max_channels_per_peer;
    config["min_ctas"] = options.gpu.min_ctas;
    config["max_ctas"] = options.gpu.max_ctas;
    config["register_staging"] = options.gpu.register_staging;
  }
  config["clock"] = ClockName(report.hosts.size() <= 1);
  return config;
}

Json TargetJson(const TargetRank& target) {
  const Fingerprint& f = target.fingerprint;
  Json json = {{"rank", target.rank},
               {"local_shape", f.local_shape},
               {"checksum", f.checksum},
               {"ordered_checksum", absl::StrCat(f.ordered_checksum)},
               {"first", f.first ? Json(*f.first) : Json()},
               {"last", f.last ? Json(*f.last) : Json()}};
  if (!target.tensor.empty()) json["tensor"] = target.tensor;
  return json;
}

// "x isend-" over "packed": the column of a baseline.
struct BaselineHead {
  std::string name;
  std::string rest;
};
const BaselineHead& HeadOf(const std::string& baseline) {
  static auto* const kHeads = new std::map<std::string, BaselineHead>;
  const auto [head, is_new] = kHeads->try_emplace(baseline);
  if (is_new) {
    const size_t cut = std::min(baseline.find('-'), baseline.size() - 1) + 1;
    head->second = {absl::StrCat("x ", baseline.substr(0, cut)), baseline.substr(cut)};
  }
  return head->second;
}

Json GateJson(const R& r) {
  Json json = {{"rank", r.gate_rank},
               {"us", Json::array()},
               {"buckets", Json::array()},
               {"bytes", Json::array()}};
  for (const GatePoint& point : r.gate) {
    json["us"].push_back(static_cast<double>(point.ns) / 1e3);
    json["buckets"].push_back(point.buckets);
    json["bytes"].push_back(point.bytes);
  }
  return json;
}

// Null: nothing was compared.
Json WrongOf(const R& r) { return r.checked ? Json(r.wrong) : Json(); }

// Null: nobody knows, or nothing is promised.
Json GrownOf(const R& r) {
  return r.memory.method == "none" ? Json() : Json(r.memory.growth_bytes);
}
Json AllowedOf(const R& r) { return r.memory.judged ? Json(r.memory.allowed_bytes) : Json(); }

// Equal ranks together.
Json WiresJson(const std::vector<LaneWires>& lanes) {
  Json json = Json::array();
  for (const LaneWires& lane : lanes) {
    for (const WireReport& wire : lane.report.wires) {
      const Json entry = {{"lane", lane.suffix},
                          {"wire", wire.wire},
                          {"library", wire.library},
                          {"why", wire.why},
                          {"fell_back_from", wire.fell_back_from}};
      auto same = std::find_if(json.begin(), json.end(), [&](const Json& other) {
        return std::all_of(entry.items().begin(), entry.items().end(),
                           [&](const auto& field) { return other[field.key()] == field.value(); });
      });
      if (same == json.end()) {
        json.push_back(entry);
        same = json.end() - 1;
        (*same)["ranks"] = Json::array();
      }
      (*same)["ranks"].push_back(wire.rank);
    }
  }
  return json;
}

}  // namespace

const Columns<CaseResult>& CaseColumns() {
  static const auto* const kColumns = new Columns<CaseResult>{
      {"case", &R::id},
      {"plan", &R::plan},
      {"coalesce", &R::coalesce},
      {"tensors", &R::tensors},
      {"tensor_bytes", &R::tensor_bytes, {"size", "(B)", 13}, Csv("size")},
      {"payload_bytes", &R::payload_bytes, {"payload", "(B)", 13}, Csv("payload")},
      {"port_bytes", &R::port_bytes},
      {"buckets", &R::buckets, {"buckets", "", 9}, Csv("buckets")},
      {"channels", &R::channels, {"channels", "", 9}, Csv("channels")},
      {"dtype", &R::dtype, {"dtype", "", 8}, Csv("dtype")},
      {"chosen/bucket_bytes", &R::bucket_bytes},
      {"chosen/max_in_flight", &R::max_in_flight},
      {"plan_us", &R::plan_us},
      {"time_us/min", &R::min_us},
      {"time_us/median", &R::median_us, {"time", "(us)", 11, 1}, Csv("time_us", 3)},
      {"gb_per_s", &R::alg_bw, {"algbw", "(GB/s)", 8, 3}, Csv("algbw", 6)},
      {"iterations_us", &R::iterations_us},
      {"bus_bw", &R::bus_bw, {"busbw", "(GB/s)", 8, 3}, Csv("busbw", 6)},
      {"checked", &R::checked},
      {"wrong", &R::wrong},
      {"", WrongOf, {"#wrong", "", 8, 0, 1, "N/A"}, Csv("wrong")},
      {"time_us/p99", &R::p99_us, {"p99", "(us)", 11, 1}, Csv("p99_us", 3)},
      {"time_us/max", &R::max_us},
      {"peak/buckets", &R::peak_buckets, {"buckets", "(peak/lim)", 11}, Csv("peak_buckets")},
      {"limit/buckets", &R::limit_buckets, kLimit, Csv("limit_buckets")},
      {"peak/bytes", &R::peak_bytes, {"bytes", "(peak/lim)", 22}, Csv("peak_bytes")},
      {"limit/bytes", &R::limit_bytes, kLimit, Csv("limit_bytes")},
      {"peak/ops", &R::peak_ops},
      {"peak_without_budget/buckets", &R::free_peak_buckets},
      {"peak_without_budget/bytes", &R::free_peak_bytes},
      {"wait_share", &R::wait_share, {"wait", "(%)", 7, 1, 100}, Csv("wait_share", 6)},
      {"memory/growth_bytes",
       GrownOf,
       {"memory", "(grown/may)", 22, 0, 1, "N/A"},
       Csv("memory_grown")},
      {"memory/allowed_bytes", AllowedOf, kLimit, Csv("memory_allowed")},
      {"memory/rank", [](const R& r) { return r.memory.rank; }},
      {"memory/method", [](const R& r) { return r.memory.method; }},
      {"plan_hash", [](const R& r) { return absl::StrFormat("%016x", r.plan_hash); }},
      {"", &R::id, {"case"}, Csv("case")}};
  return *kColumns;
}

Columns<CaseResult> NarrowColumns(const std::vector<std::string>& baselines) {
  constexpr auto kBytes = Unit::kBytes;
  std::vector<Column<R>> columns = {
      {"", &R::tensor_bytes, {.head = "size", .width = 9, .unit_of_cell = kBytes}},
      {"", &R::median_us, {.head = "time", .width = 9, .unit_of_cell = Unit::kMicroseconds}},
      {"", &R::alg_bw, {"GB/s", "", 7, 3}}};
  int width = 30;
  for (const std::string& name : baselines) {
    const BaselineHead& head = HeadOf(name);
    const auto ratio = [name](const R& r) -> Json {
      for (const BaselineResult& b : r.baselines) {
        if (b.name != name || !b.reason.empty()) continue;
        if (b.wrong > 0) return "WRONG";
        return absl::StrFormat("%s%.2f", b.ratio.median < 1 ? "*" : "", b.ratio.median);
      }
      return {};
    };
    const int wide = static_cast<int>(std::max(head.name.size(), head.rest.size()));
    columns.emplace_back("", ratio, Shown{head.name.c_str(), head.rest.c_str(), wide});
    width += wide + 1;
  }
  // What is left of the width, the most important first.
  const auto add = [&](Column<R> column, std::optional<Column<R>> limit = std::nullopt) {
    if (width + column.style.table.width + 1 > static_cast<int>(kTableWidth)) return;
    width += column.style.table.width + 1;
    columns.push_back(std::move(column));
    if (limit) columns.push_back(*std::move(limit));
  };
  width += 7;  // #wrong, which comes last
  add({"", &R::buckets, {"buckets", "", 7}});
  add({"", &R::peak_buckets, {"buckets", "at once", 8}}, {{"", &R::limit_buckets, kLimit}});
  add({"",
       &R::peak_bytes,
       {.head = "staging", .unit = "at once", .width = 19, .unit_of_cell = kBytes}},
      {{"", &R::limit_bytes, kLimit}});
  columns.push_back({"", WrongOf, {"#wrong", "", 6, 0, 1, "N/A"}});
  return Columns<CaseResult>(std::move(columns));
}

const Columns<PlanFigures>& PlanColumns() {
  using P = PlanFigures;
  static const auto* const kColumns = new Columns<PlanFigures>{
      {"case", &P::id},
      {"time_us", [](const P&) { return Json(); }},  // nothing moves
      {"gb_per_s", [](const P&) { return Json(); }},
      {"plan", &P::plan},
      {"coalesce", &P::coalesce},
      {"node_bytes", &P::node_bytes, {"across (B)", "", 13}},
      // Infinite, and null in JSON: something crosses although nothing has to.
      {"node_bytes_ratio", &P::node_bytes_ratio, {"across", "", 8, 3}},
      {"busiest_src_ratio", &P::busiest_src_ratio, {"sender", "", 8, 3}},
      {"busiest_dst_ratio", &P::busiest_dst_ratio, {"receiver", "", 8, 3}},
      {"hops_max", &P::hops_max, {"hops", "", 5}},
      {"chosen/bucket_bytes", &P::bucket_bytes, {"most (B)", "", 9}},
      {"chosen/max_in_flight", &P::max_in_flight},
      {"buckets", &P::buckets, {"buckets", "", 9}},
      {"chunks", &P::chunks},
      {"channels", &P::channels, {"channels", "", 9}},
      {"peak_without_budget/buckets", &P::peak_buckets, {"peak", "", 9}},
      {"peak_without_budget/bytes", &P::peak_bytes, {"peak (B)", "", 13}},
      {"", &P::id, {"case"}},
      {"routes", [](const P& p) {
         Json routes = Json::array();
         for (const RouteBytes& r : p.routes) {
           routes.push_back({{"src", r.src}, {"dst", r.dst}, {"bytes", r.bytes}, {"hop", r.hop}});
         }
         return routes;
       }}};
  return *kColumns;
}

std::string JsonText(const Options& options, const RunReport& report) {
  Json json = ResultsHead(ConfigJson(options, report));
  if (report.nccl_bytes > 0) json["nccl_bytes_estimate"] = report.nccl_bytes;
  if (!report.wires.empty()) json["wires"] = WiresJson(report.wires);
  json["results"] = Json::array();
  for (const PlanFigures& plan : report.plans)
    json["results"].push_back(PlanColumns().ToJson(plan));
  for (const CaseResult& r : report.results) {
    Json row = CaseColumns().ToJson(r);
    AddBaselines(r.baselines, &row);
    if (r.whole_target_bytes > 0) {
      row["windowed"] = {{"peak_target_bytes", r.windowed_target_bytes},
                         {"peak_bytes", r.windowed_bytes},
                         {"whole_target_bytes", r.whole_target_bytes}};
    }
    if (r.gate_rank >= 0) row["gate"] = GateJson(r);
    if (options.fingerprint) {
      Json& targets = row["target_ranks"] = Json::array();
      for (const TargetRank& target : r.target_ranks) targets.push_back(TargetJson(target));
    }
    json["results"].push_back(row);
  }
  json["errors"] = ErrorsJson(report.ErrorsSoFar());
  if (!report.notes.empty()) json["notes"] = report.notes;
  return ResultsText(json);
}

}  // namespace sluice::bench
