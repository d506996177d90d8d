// Lines and JSON.
#include "sync/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace sluice::bench {
namespace {

using SyncJson = nlohmann::ordered_json;

SyncJson SyncConfig(const SyncOptions& options, const SyncReport& report) {
  return {{"role", report.role},
          {"rank", report.rank},
          {"size", report.size},
          {"store", report.store},
          {"wires", report.wires},
          {"model", options.model_file},
          {"system", options.system_file},
          {"layers", options.cut.layers},
          {"scale", options.cut.scale},
          {"tensors", options.tensors},
          {"fill_seed", options.seed},
          {"versions", options.versions},
          {"at_least", options.at_least},
          {"pause_ms", options.pause_ms},
          {"progress_thread", options.progress_thread},
          {"timeout_s", options.timeout_s},
          {"wait_s", options.wait_s > 0 ? SyncJson(options.wait_s) : SyncJson()}};
}

SyncJson ByRole(int64_t trainer, int64_t server) {
  return {{kTrainer, trainer}, {kServer, server}};
}

SyncJson VersionJson(const SyncVersion& v) {
  SyncJson json = {{"version", v.version},
                   {"epoch", v.epoch},
                   {"catch_up", v.catch_up},
                   {"time_us", v.time_us},
                   {"own_us", v.own_us > 0 ? SyncJson(v.own_us) : SyncJson()},
                   {"ended_us", v.ended_us > 0 ? SyncJson(v.ended_us) : SyncJson()},
                   {"wrong", v.wrong},
                   {"members", ByRole(v.trainers, v.servers)},
                   {"bytes_from", ByRole(v.trainer_bytes, v.server_bytes)},
                   {"payload_bytes", v.payload_bytes}};
  if (v.catch_up) json["caught_up"] = v.caught_up;
  return json;
}

// The one result: of all versions but the catch-ups. Nothing if there are none.
SyncJson ResultsJson(const SyncOptions& options, const SyncReport& report) {
  std::vector<double> times;
  int64_t payload = 0;
  for (const SyncVersion& version : report.versions) {
    if (version.catch_up) continue;
    times.push_back(static_cast<double>(version.time_us));
    payload = version.payload_bytes;
  }
  SyncJson results = SyncJson::array();
  if (times.empty()) return results;
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const std::string name = options.model_file.empty() ? options.tensors : options.model_file;
  results.push_back(
      {{"case", options.system_file.empty() ? name : absl::StrCat(name, "/", options.system_file)},
       {"time_us", TimesJson({.min = times.front(), .median = median, .max = times.back()})},
       {"gb_per_s", GbPerSecond(payload, median)},
       {"payload_bytes", payload},
       {"wrong", AllWrong(report)}});
  return results;
}

SyncJson EpochsJson(const SyncReport& report) {
  SyncJson all = SyncJson::array();
  for (const SyncEpochTimes& times : report.epochs) {
    all.push_back({{"epoch", times.epoch},
                   {"members", ByRole(times.trainers, times.servers)},
                   {"session_us", times.session_us},
                   {"ready_us", times.ready_us}});
  }
  return all;
}

SyncJson LostJson(const SyncReport& report) {
  SyncJson all = SyncJson::array();
  for (const SyncLost& lost : report.lost) {
    all.push_back({{"member", lost.member},
                   {"process", lost.process},
                   {"epoch", lost.epoch},
                   {"version", lost.version},
                   {"noticed_us", lost.noticed_us}});
  }
  return all;
}

}  // namespace

int64_t UnixUs() { return absl::ToUnixMicros(absl::Now()); }

std::string VersionHeader() {
  return absl::StrFormat("# %9s %6s %9s %8s %12s %8s %13s %13s\n", "version", "epoch", "trainers",
                         "servers", "time_us", "wrong", "trainer_bytes", "server_bytes");
}

std::string VersionLine(const SyncVersion& v) {
  return absl::StrFormat(
      "%11d %6d %9d %8d %12d %8d %13d %13d%s\n", v.version, v.epoch, v.trainers, v.servers,
      v.time_us, v.wrong, v.trainer_bytes, v.server_bytes,
      v.catch_up ? absl::StrCat("  caught up: ", absl::StrJoin(v.caught_up, ", ")) : "");
}

std::string EpochLine(const SyncEpochTimes& t) {
  constexpr double kUsOfMs = 1e3;
  return absl::StrFormat(
      "# epoch %d: %d trainers, %d servers; session after %.1f ms, ready %.1f ms later\n", t.epoch,
      t.trainers, t.servers, static_cast<double>(t.session_us) / kUsOfMs,
      static_cast<double>(t.ready_us) / kUsOfMs);
}

std::string LostLine(const SyncReport& report, const SyncLost& lost) {
  return absl::StrFormat("# %s %d: lost %s (%s) in version %d of epoch %d\n", report.role,
                         report.rank, lost.member, lost.process, lost.version, lost.epoch);
}

std::string SyncFooter(const SyncReport& report) {
  const int64_t wrong = AllWrong(report);
  const auto catch_ups = std::count_if(report.versions.begin(), report.versions.end(),
                                       [](const SyncVersion& v) { return v.catch_up; });
  return absl::StrCat("# versions: ", report.versions.size() - static_cast<size_t>(catch_ups),
                      ", catch-ups: ", catch_ups, ", lost members: ", report.lost.size(),
                      "\n# wrong elements: ", wrong, wrong == 0 ? " OK\n" : "\n",
                      ErrorLines(report));
}

std::string JsonText(const SyncOptions& options, const SyncReport& report) {
  SyncJson json = ResultsHead(SyncConfig(options, report));
  json["results"] = ResultsJson(options, report);
  json["versions"] = SyncJson::array();
  for (const SyncVersion& version : report.versions) {
    json["versions"].push_back(VersionJson(version));
  }
  json["epochs"] = EpochsJson(report);
  json["lost"] = LostJson(report);
  json["errors"] = ErrorsJson(report.ErrorsSoFar());
  return ResultsText(json);
}

int64_t AllWrong(const SyncReport& report) {
  int64_t wrong = 0;
  for (const SyncVersion& version : report.versions) wrong += version.wrong;
  return wrong;
}

}  // namespace sluice::bench
