// Running `sluice-bench shards`.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "commands.h"
#include "job/exit_codes.h"
#include "report/report.h"
#include "shards/make_shards.h"
#include "storage/format/shard_index.h"
#include "workload/numbers.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

using ShardsJson = nlohmann::ordered_json;

// The results file; `plan` and `made` are null where it did not come so far.
std::string JsonText(const ShardsOptions& options, const ShardsPlan* plan, const ShardsMade* made,
                     double seconds, const std::vector<JobError>& errors) {
  ShardsJson json = ResultsHead({{"make", options.format},
                                 {"dir", options.directory},
                                 {"items", options.items},
                                 {"item_bytes", plan != nullptr ? plan->item_bytes : 0},
                                 {"items_per_object", plan != nullptr ? plan->items_per_object : 0},
                                 {"fill_seed", options.seed},
                                 {"dtype", options.dtype},
                                 {"force", options.force}});
  json["results"] = ShardsJson::array();
  if (made != nullptr) {
    const double us = 1e6 * seconds;
    const int64_t payload = made->items * plan->item_bytes;
    json["results"].push_back({{"case", options.format},
                               {"time_us", TimesJson({.min = us, .median = us, .max = us})},
                               {"gb_per_s", GbPerSecond(payload, us)},
                               {"items", made->items},
                               {"objects", made->objects},
                               {"payload_bytes", payload},
                               {"bytes", made->bytes},
                               {"index", absl::StrCat(plan->directory, "/", kShardIndexName)}});
  }
  json["errors"] = ErrorsJson(errors);
  return ResultsText(json);
}

absl::Status SaveJson(const ShardsOptions& options, const std::string& json) {
  return options.json_file.empty() ? absl::OkStatus() : WriteFile(options.json_file, json);
}

int Complain(const absl::Status& status, int code) {
  absl::FPrintF(stderr, "sluice-bench shards: %s\n", status.message());
  return code;
}

int Fail(const absl::Status& status, const ShardsOptions& options, const ShardsPlan* plan,
         int code) {
  const std::vector<JobError> errors = {{"", std::string(status.message())}};
  // The error itself may be that the file cannot be written.
  SaveJson(options, JsonText(options, plan, nullptr, 0, errors)).IgnoreError();
  return Complain(status, code);
}

void Print(const ShardsPlan& plan, const ShardsMade& made, double seconds) {
  const double mib = static_cast<double>(made.bytes) / (1 << 20);
  absl::PrintF("format   %s, %s, seed %d\n", ShardFormatName(plan.format), ElementName(plan.type),
               plan.seed);
  absl::PrintF("items    %d of %s\n", made.items, BytesName(plan.item_bytes));
  absl::PrintF("objects  %d, up to %d items each\n", made.objects, plan.items_per_object);
  absl::PrintF("bytes    %d (%s)\n", made.bytes, BytesName(made.bytes));
  absl::PrintF("time     %.3f s, %.0f MiB/s, synced\n", seconds, mib / seconds);
  absl::PrintF("index    %s/%s\n", plan.directory, kShardIndexName);
}

}  // namespace

int RunShards(const ShardsOptions& options) {
  const auto plan = ParseShards(options);
  if (!plan.ok()) return Fail(plan.status(), options, nullptr, kBadUsageExit);
  // Before anything is written that nobody could report.
  absl::Status saved =
      SaveJson(options, JsonText(options, &*plan, nullptr, 0, {{"", "the run has not ended"}}));
  if (!saved.ok()) return Complain(saved, kBadUsageExit);
  const absl::Time start = absl::Now();
  const auto made = MakeShards(*plan);
  if (!made.ok()) return Fail(made.status(), options, &*plan, kFailedExit);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  Print(*plan, *made, seconds);
  saved = SaveJson(options, JsonText(options, &*plan, &*made, seconds, {}));
  return saved.ok() ? kGoodExit : Complain(saved, kFailedExit);
}

}  // namespace sluice::bench
