// The flags of `sluice-bench shards`: their names are an interface.
#ifndef SLUICE_TOOLS_SHARDS_OPTIONS_H_
#define SLUICE_TOOLS_SHARDS_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shards/make_shards.h"

namespace CLI {
class App;
}

namespace sluice::bench {

// The flags as they were typed.
struct ShardsOptions {
  absl::Status flags;  // why they could not be parsed
  std::string format;
  std::string directory;
  int64_t items = 0;
  std::string item_bytes;
  int64_t items_per_object = 0;  // 0: as many as make about 64 MiB
  uint64_t seed = 0;
  std::string dtype = "u8";
  bool force = false;
  std::string json_file;
};

void AddShardsFlags(CLI::App* app, ShardsOptions* options);

// What the flags ask for. InvalidArgument names the flag and what is wrong.
absl::StatusOr<ShardsPlan> ParseShards(const ShardsOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_SHARDS_OPTIONS_H_
