// Running `sluice-bench shards`.
#include "shards/shards.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "job/exit_codes.h"
#include "shards/make_shards.h"
#include "storage/format/shard_index.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

int Fail(const absl::Status& status, int code) {
  absl::FPrintF(stderr, "sluice-bench shards: %s\n", status.message());
  return code;
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
  if (!plan.ok()) return Fail(plan.status(), kBadUsageExit);
  const absl::Time start = absl::Now();
  const auto made = MakeShards(*plan);
  if (!made.ok()) return Fail(made.status(), kFailedExit);
  Print(*plan, *made, absl::ToDoubleSeconds(absl::Now() - start));
  return kGoodExit;
}

}  // namespace sluice::bench
