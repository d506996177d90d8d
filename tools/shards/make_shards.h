// Writes data shards whose contents everyone can compute (workload/shard_fill.h), and their
// index.json.
#ifndef SLUICE_TOOLS_SHARDS_MAKE_SHARDS_H_
#define SLUICE_TOOLS_SHARDS_MAKE_SHARDS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/element_type.h"
#include "storage/format/catalog_formats.h"

namespace CLI {
class App;
}

namespace sluice::bench {

inline constexpr int64_t kMostShardItems = int64_t{1} << 40;
inline constexpr int64_t kMostShardObjects = 1'000'000;
// A header of that many is tens of megabytes long.
inline constexpr int64_t kMostTensorsPerObject = 500'000;

struct ShardsPlan {
  ShardFormat format = ShardFormat::kRaw;
  ElementType type = ElementType::kU8;
  std::string directory;
  int64_t items = 0;
  int64_t item_bytes = 0;  // a multiple of the element's
  int64_t items_per_object = 1;
  uint64_t seed = 0;
  bool force = false;  // write into a directory that is not empty

  int64_t objects() const { return (items - 1) / items_per_object + 1; }
};

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

struct ShardsMade {
  int64_t objects = 0;
  int64_t items = 0;
  int64_t bytes = 0;  // of the objects, headers included
};

// Item i of all is record i % items_per_object of object i / items_per_object: its bytes in raw,
// its place along dimension 0 in npy, a tensor named "item-<i>" in safetensors. Data begins at a
// multiple of 4096 in every object. The index is written last, and an old one removed first, so
// that a directory with an index is whole. AlreadyExists if the directory is not empty, unless
// forced; or the file system's error.
absl::StatusOr<ShardsMade> MakeShards(const ShardsPlan& plan);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_SHARDS_MAKE_SHARDS_H_
