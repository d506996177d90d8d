// Writing the results file.
#include "reshard/report_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice::bench {
namespace {

using Json = nlohmann::ordered_json;

Json ConfigJson(const Options& options, const RunReport& report) {
  Json config;
  for (const auto& [name, value] : Knobs(options)) config[name] = value;
  config["timeout_s"] = options.timeout_s;
  config["fingerprint"] = options.fingerprint;
  config["plan_only"] = options.plan_only;
  config["compare_budgets"] = options.compare_budgets;
  config["compare_transports"] = options.compare_transports;
  config["plan"] = options.plan;
  config["compare_plans"] = options.compare_plans;
  config["coalesce"] = !options.no_coalesce;
  config["compare_coalesce"] = options.compare_coalesce;
  config["compare_bucket_bytes"] = options.compare_bucket_bytes;
  config["compare_max_in_flight"] = options.compare_max_in_flight;
  config["memory"] = options.memory;
  config["fill"] = options.fill;
  config["baselines"] = options.baselines;
  config["cases"] = options.cases_file;
  config["preset"] = options.preset;
  config["model"] = options.model_file;
  config["system"] = options.system_file;
  config["layers"] = options.cut.layers;
  config["scale"] = options.cut.scale;
  config["replicas"] = options.replicas;
  config["world"] = report.world;
  config["hosts"] = report.hosts.size();
  config["host_names"] = report.hosts;
  config["mpi"] = report.mpi;
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

void AddBaselines(const std::vector<BaselineResult>& baselines, Json* json) {
  if (baselines.empty()) return;
  Json all = Json::object();
  Json reasons = Json::object();
  for (const BaselineResult& b : baselines) {
    if (!b.reason.empty()) {
      all[b.name] = nullptr;
      reasons[b.name] = b.reason;
      continue;
    }
    all[b.name] = {{"time_us", b.time_us},     {"gb_per_s", b.alg_bw},     {"ratio", b.ratio},
                   {"ratio_p25", b.ratio_p25}, {"ratio_p75", b.ratio_p75}, {"wrong", b.wrong}};
  }
  (*json)["baselines"] = all;
  if (!reasons.empty()) (*json)["baseline_reasons"] = reasons;
}

// null: nobody knows, or nothing is promised.
Json MemoryJson(const MemoryGrowth& m) {
  return {{"growth_bytes", m.method == "none" ? Json() : Json(m.growth_bytes)},
          {"allowed_bytes", m.judged ? Json(m.allowed_bytes) : Json()},
          {"rank", m.rank},
          {"method", m.method}};
}

Json ResultJson(const CaseResult& r, bool fingerprint) {
  Json json = {
      {"case", r.id},
      {"plan", r.plan},
      {"coalesce", r.coalesce},
      {"dtype", r.dtype},
      {"tensors", r.tensors},
      {"tensor_bytes", r.tensor_bytes},
      {"payload_bytes", r.payload_bytes},
      {"port_bytes", r.port_bytes},
      {"buckets", r.buckets},
      {"channels", r.channels},
      {"chosen", {{"bucket_bytes", r.bucket_bytes}, {"max_in_flight", r.max_in_flight}}},
      {"plan_us", r.plan_us},
      {"time_us",
       TimesJson({.min = r.min_us, .median = r.median_us, .max = r.max_us, .p99 = r.p99_us})},
      {"gb_per_s", GbPerSecond(r.payload_bytes, r.median_us)},
      {"iterations_us", r.iterations_us},
      {"bus_bw", r.bus_bw},
      {"checked", r.checked},
      {"wrong", r.wrong},
      {"peak", {{"buckets", r.peak_buckets}, {"bytes", r.peak_bytes}, {"ops", r.peak_ops}}},
      {"limit", {{"buckets", r.limit_buckets}, {"bytes", r.limit_bytes}}},
      {"peak_without_budget", {{"buckets", r.free_peak_buckets}, {"bytes", r.free_peak_bytes}}},
      {"memory", MemoryJson(r.memory)},
      {"wait_share", r.wait_share},
      {"plan_hash", absl::StrFormat("%016x", r.plan_hash)}};
  AddBaselines(r.baselines, &json);
  if (r.whole_target_bytes > 0) {
    json["windowed"] = {{"peak_target_bytes", r.windowed_target_bytes},
                        {"peak_bytes", r.windowed_bytes},
                        {"whole_target_bytes", r.whole_target_bytes}};
  }
  if (fingerprint) {
    json["target_ranks"] = Json::array();
    for (const TargetRank& target : r.target_ranks) {
      json["target_ranks"].push_back(TargetJson(target));
    }
  }
  return json;
}

// null: something crosses although nothing has to.
Json RatioJson(double ratio) { return std::isfinite(ratio) ? Json(ratio) : Json(); }

Json PlanJson(const PlanFigures& p) {
  Json json = {{"case", p.id},
               {"time_us", nullptr},  // nothing moves
               {"gb_per_s", nullptr},
               {"plan", p.plan},
               {"coalesce", p.coalesce},
               {"node_bytes", p.node_bytes},
               {"node_bytes_ratio", RatioJson(p.node_bytes_ratio)},
               {"busiest_src_ratio", RatioJson(p.busiest_src_ratio)},
               {"busiest_dst_ratio", RatioJson(p.busiest_dst_ratio)},
               {"hops_max", p.hops_max},
               {"chosen", {{"bucket_bytes", p.bucket_bytes}, {"max_in_flight", p.max_in_flight}}},
               {"buckets", p.buckets},
               {"chunks", p.chunks},
               {"channels", p.channels},
               {"peak_without_budget", {{"buckets", p.peak_buckets}, {"bytes", p.peak_bytes}}}};
  json["routes"] = Json::array();
  for (const RouteBytes& r : p.routes) {
    json["routes"].push_back({{"src", r.src}, {"dst", r.dst}, {"bytes", r.bytes}, {"hop", r.hop}});
  }
  return json;
}

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

std::string JsonText(const Options& options, const RunReport& report) {
  Json json = ResultsHead(ConfigJson(options, report));
  if (report.nccl_bytes > 0) json["nccl_bytes_estimate"] = report.nccl_bytes;
  if (!report.wires.empty()) json["wires"] = WiresJson(report.wires);
  json["results"] = Json::array();
  for (const CaseResult& result : report.results) {
    json["results"].push_back(ResultJson(result, options.fingerprint));
  }
  for (const PlanFigures& plan : report.plans) json["results"].push_back(PlanJson(plan));
  json["errors"] = ErrorsJson(report.ErrorsSoFar());
  if (!report.notes.empty()) json["notes"] = report.notes;
  return ResultsText(json);
}

}  // namespace sluice::bench
