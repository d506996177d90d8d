// The flags as results have them, and as ranks compare them.
#include "absl/strings/numbers.h"
#include "checkpoint/options.h"
#include "tensor/stable_hash.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

using ConfigJson = nlohmann::ordered_json;

// What cannot be read stays as it was given: the error says so.
ConfigJson BytesJson(const std::string& text) {
  const absl::StatusOr<int64_t> bytes = ParseBytes(text);
  return bytes.ok() ? ConfigJson(*bytes) : ConfigJson(text);
}

}  // namespace

std::vector<std::pair<std::string, ConfigJson>> Config(const CheckpointBenchOptions& o) {
  return {{"path", o.path},
          {"layout", o.layout},
          {"make", o.make},
          {"save_layout", o.save_layout},
          {"shape", o.shape},
          {"dtype", o.dtype},
          {"tensors", o.tensors},
          {"model", o.model_file},
          {"system", o.system_file},
          {"layers", o.cut.layers},
          {"scale", o.cut.scale},
          {"budget_bytes", BytesJson(o.budget_bytes)},
          {"slots", o.slots},
          {"piece_bytes", BytesJson(o.piece_bytes)},
          {"shard_bytes", BytesJson(o.shard_bytes)},
          {"progress_thread", o.progress_thread},
          {"timeout_s", o.timeout_s},
          {"iters", o.iterations},
          {"warmup", o.warmup},
          {"baselines", ConfigJson(o.baselines)},
          {"cold", o.cold},
          {"new_memory", o.new_memory},
          {"check", static_cast<int>(o.check_or_default())},
          {"fill_seed", o.seed}};
}

std::vector<std::pair<std::string, int64_t>> CheckpointKnobs(const CheckpointBenchOptions& o) {
  std::vector<std::pair<std::string, int64_t>> knobs;
  for (const auto& [name, value] : Config(o)) {
    if (value.is_number_integer() || value.is_boolean()) {
      knobs.emplace_back(name,
                         value.is_boolean() ? int64_t{value.get<bool>()} : value.get<int64_t>());
      continue;
    }
    StableHash hash;
    hash.AddText(value.dump(-1, ' ', false, ConfigJson::error_handler_t::replace));
    knobs.emplace_back(name, static_cast<int64_t>(hash.value() >> 1));
  }
  return knobs;
}

}  // namespace sluice::bench
