// Declaring and reading the flags.
#include "shards/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "job/flags.h"
#include "job/help.h"
#include "workload/json_input.h"
#include "workload/numbers.h"

namespace sluice::bench {

void AddShardsFlags(CLI::App* app, ShardsOptions* o) {
  app->add_option("--make", o->format, "format of the objects: raw, npy or safetensors")
      ->required();
  app->add_option("--dir", o->directory, "directory to write to; made if it is not there")
      ->required();
  app->add_option("--items", o->items, "items in all")
      ->required()
      ->check(CLI::Range(int64_t{1}, kMostShardItems));
  app->add_option("--item-bytes", o->item_bytes, "bytes of an item, e.g. 150528 or 1M")->required();
  OrAuto(app->add_option("--items-per-object", o->items_per_object,
                         "items of an object, the last one may have fewer [auto: as many as make "
                         "64M]")
             ->check(CLI::Range(int64_t{0}, kMostShardItems)));
  app->add_option("--seed", o->seed, "part of the formula that fills the items [0]");
  app->add_option("--dtype", o->dtype, "elements of an item: u8, i16, f16, bf16, f32, ... [u8]");
  AddSwitch(app, "--force", &o->force,
            "write into a directory that is not empty: files of the same names are replaced, "
            "others stay");
  app->add_option("-J,--json", o->json_file, "write the results here, also on failure");
  SetHelp(app,
          "build/bin/sluice-bench shards --make raw --dir /tmp/shards --items 64 --item-bytes 1M "
          "--force");
}

absl::StatusOr<ShardsPlan> ParseShards(const ShardsOptions& options) {
  if (!options.flags.ok()) return options.flags;
  ShardsPlan plan;
  const auto format = ParseShardFormat(options.format);
  if (!format.ok()) return Prefixed("--make", format.status());
  const auto type = ParseElementType(options.dtype);
  if (!type.ok()) return Prefixed("--dtype", type.status());
  const auto item_bytes = ParseBytes(options.item_bytes);
  if (!item_bytes.ok()) return Prefixed("--item-bytes", item_bytes.status());
  plan.format = *format;
  plan.type = *type;
  plan.directory = options.directory;
  plan.items = options.items;
  plan.item_bytes = *item_bytes;
  plan.seed = options.seed;
  plan.force = options.force;
  if (*item_bytes < 1 || *item_bytes % ElementBytes(*type) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--item-bytes: ", *item_bytes, " bytes are no whole elements of ",
                     ElementName(*type), ", which have ", ElementBytes(*type)));
  }
  if (*item_bytes > std::numeric_limits<int64_t>::max() / 4 / options.items) {
    return absl::InvalidArgumentError("--items times --item-bytes does not fit 61 bits");
  }
  constexpr int64_t kObjectBytes = int64_t{64} << 20;
  plan.items_per_object = options.items_per_object > 0
                              ? options.items_per_object
                              : std::max(int64_t{1}, kObjectBytes / *item_bytes);
  if (plan.objects() > kMostShardObjects) {
    return absl::InvalidArgumentError(absl::StrCat("--items-per-object: ", plan.objects(),
                                                   " objects are more than ", kMostShardObjects));
  }
  if (*format == ShardFormat::kSafetensors && plan.items_per_object > kMostTensorsPerObject) {
    return absl::InvalidArgumentError(
        absl::StrCat("--items-per-object: a safetensors object has a tensor per item, at most ",
                     kMostTensorsPerObject, " of them here"));
  }
  if (*format == ShardFormat::kNpy && NpyDescr(*type).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype: a .npy object cannot hold ", ElementName(*type)));
  }
  return plan;
}

}  // namespace sluice::bench
