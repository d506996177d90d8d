// Catalogs of what is in objects of each format.
#ifndef SLUICE_SRC_STORAGE_FORMAT_CATALOG_FORMATS_H_
#define SLUICE_SRC_STORAGE_FORMAT_CATALOG_FORMATS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/catalog.h"
#include "storage/format/npy.h"
#include "storage/format/safetensors.h"

namespace sluice {

enum class ShardFormat { kRaw, kNpy, kSafetensors };

// "raw", "npy", "safetensors".
absl::string_view ShardFormatName(ShardFormat format);
absl::StatusOr<ShardFormat> ParseShardFormat(absl::string_view text);

// Each adds one object and its items. On an error the catalog is of no use any more.

// Records of `record_bytes`, which fill the object of `bytes`. InvalidArgument if they do not.
absl::Status AddRawObject(std::string name, int64_t bytes, int64_t record_bytes,
                          const ItemType* type, Catalog* catalog);

// An item is one index of dimension 0, of the shape of the other dimensions. InvalidArgument for an
// array of no dimensions, and for items of no bytes.
absl::Status AddNpyObject(std::string name, const NpyHeader& header, Catalog* catalog);

// An item is one tensor, in the order of their offsets.
absl::Status AddSafetensorsObject(std::string name, const SafetensorsHeader& header,
                                  Catalog* catalog);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FORMAT_CATALOG_FORMATS_H_
