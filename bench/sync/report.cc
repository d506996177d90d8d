// Lines and JSON.
#include "sync/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace sluice::bench {
namespace {

Json SyncConfig(const SyncOptions& options, const SyncReport& report) {
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
          {"wait_s", options.wait_s > 0 ? Json(options.wait_s) : Json()}};
}

Json OrNull(int64_t us) { return us > 0 ? Json(us) : Json(); }

const Columns<SyncVersion>& VersionColumns() {
  using V = SyncVersion;
  static const auto* const kColumns =
      new Columns<V>{{"version", &V::version, {"version", "", 10}},
                     {"epoch", &V::epoch, {"epoch", "", 6}},
                     {"members/trainer", &V::trainers, {"trainers", "", 9}},
                     {"members/server", &V::servers, {"servers", "", 8}},
                     {"catch_up", &V::catch_up},
                     {"time_us", &V::time_us, {"time_us", "", 12}},
                     {"own_us", [](const V& v) { return OrNull(v.own_us); }},
                     {"ended_us", [](const V& v) { return OrNull(v.ended_us); }},
                     {"wrong", &V::wrong, {"wrong", "", 8}},
                     {"bytes_from/trainer", &V::trainer_bytes, {"trainer_bytes", "", 13}},
                     {"bytes_from/server", &V::server_bytes, {"server_bytes", "", 13}},
                     {"payload_bytes", &V::payload_bytes}};
  return *kColumns;
}

// The one result: of all versions but the catch-ups. Nothing if there are none.
Json ResultsJson(const SyncOptions& options, const SyncReport& report) {
  std::vector<double> times;
  int64_t payload = 0;
  for (const SyncVersion& version : report.versions) {
    if (version.catch_up) continue;
    times.push_back(static_cast<double>(version.time_us));
    payload = version.payload_bytes;
  }
  Json results = Json::array();
  if (times.empty()) return results;
  const std::string name = options.model_file.empty() ? options.tensors : options.model_file;
  results.push_back(
      {{"case", options.system_file.empty() ? name : absl::StrCat(name, "/", options.system_file)},
       {"time_us", TimesJson(times)},
       {"gb_per_s", GbPerSecond(payload, Median(times))},
       {"payload_bytes", payload},
       {"wrong", AllWrong(report)}});
  return results;
}

Json EpochsJson(const SyncReport& report) {
  Json all = Json::array();
  for (const SyncEpochTimes& times : report.epochs) {
    all.push_back({{"epoch", times.epoch},
                   {"members", {{kTrainer, times.trainers}, {kServer, times.servers}}},
                   {"session_us", times.session_us},
                   {"ready_us", times.ready_us}});
  }
  return all;
}

Json LostJson(const SyncReport& report) {
  Json all = Json::array();
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

std::string VersionHeader() { return VersionColumns().TableHead(); }

std::string VersionLine(const SyncVersion& v) {
  std::string line = VersionColumns().TableRow(v);
  if (v.catch_up) line.insert(line.size() - 1, "  caught up: " + absl::StrJoin(v.caught_up, ", "));
  return line;
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
  Json json = ResultsHead(SyncConfig(options, report));
  json["results"] = ResultsJson(options, report);
  json["versions"] = Json::array();
  for (const SyncVersion& version : report.versions) {
    json["versions"].push_back(VersionColumns().ToJson(version));
    if (version.catch_up) json["versions"].back()["caught_up"] = version.caught_up;
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
