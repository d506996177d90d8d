// index.json: a catalog as a file beside its objects, so that nobody must list a directory or read
// headers first.
//
//   {"version": 1, "format": "raw", "items": 5, "dtype": "bf16", "shape": [64],
//    "objects": [
//      {"name": "a.bin", "bytes": 512, "items": 4, "offset": 0, "item_bytes": 128},
//      {"name": "b.bin", "bytes": 512, "ranges": [[256, 128]]}]}
//
// "offset" (0 by default) and "stride" (item_bytes by default) count bytes, as "ranges" of [offset,
// bytes] do. "dtype" and "shape", of every item, come together or not at all; "bytes" of an object
// may be left out if it is not known.
#ifndef SLUICE_SRC_STORAGE_FORMAT_SHARD_INDEX_H_
#define SLUICE_SRC_STORAGE_FORMAT_SHARD_INDEX_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/catalog.h"
#include "storage/format/catalog_formats.h"

namespace sluice {

inline constexpr absl::string_view kShardIndexName = "index.json";

struct ShardIndexLimits {
  int64_t text_bytes = 256'000'000;
  int64_t objects = 4'000'000;
  int64_t ranges = 16'000'000;  // of all objects
};

struct ShardIndex {
  ShardFormat format = ShardFormat::kRaw;
  Catalog catalog;
};

// Reads an index; keys that it does not know are passed over. InvalidArgument says what is wrong.
absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view text,
                                           const ShardIndexLimits& limits = {});

// The text of an index. Types of items are lost unless all have the same. InvalidArgument for more
// items that are not uniform within their object than readers take.
absl::StatusOr<std::string> ShardIndexText(ShardFormat format, const Catalog& catalog);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FORMAT_SHARD_INDEX_H_
