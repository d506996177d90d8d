// Writing index.json.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "storage/format/json_events.h"
#include "storage/format/shard_index.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// The members that say where the object's items are. `ranges` counts those of all objects.
absl::StatusOr<std::string> ItemsText(const Catalog& catalog, int object, int64_t* ranges) {
  const absl::Span<const Catalog::Stretch> runs = catalog.RunsOf(object);
  if (runs.size() == 1 && runs[0].item_bytes > 0) {
    const Catalog::Stretch& run = runs[0];
    std::string text =
        absl::StrCat("\"items\": ", catalog.CountOf(run), ", \"offset\": ", run.offset,
                     ", \"item_bytes\": ", run.item_bytes);
    if (run.stride != run.item_bytes) absl::StrAppend(&text, ", \"stride\": ", run.stride);
    return text;
  }
  *ranges += catalog.ItemsOf(object);
  const int64_t most = ShardIndexLimits().ranges;
  if (*ranges > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shard index cannot hold more than ", most, " ranges"));
  }
  std::string text = "\"ranges\": [";
  for (const Catalog::Stretch& run : runs) {
    const int64_t count = catalog.CountOf(run);
    for (int64_t i = 0; i < count; ++i) {
      absl::StrAppend(&text, text.back() == '[' ? "[" : ", [", run.offset + i * run.stride, ", ",
                      run.item_bytes, "]");
    }
  }
  return text + "]";
}

}  // namespace

absl::StatusOr<std::string> ShardIndexText(ShardFormat format, const Catalog& catalog) {
  std::string text = absl::StrCat("{\"version\": 1, \"format\": \"", ShardFormatName(format),
                                  "\", \"items\": ", catalog.items());
  if (const ItemType* type = catalog.UniformType(); type != nullptr) {
    absl::StrAppend(&text, ", \"dtype\": \"", ElementName(type->element), "\", \"shape\": [",
                    absl::StrJoin(type->shape, ", "), "]");
  }
  absl::StrAppend(&text, ",\n \"objects\": [");
  int64_t ranges = 0;
  for (size_t i = 0; i < catalog.objects().size(); ++i) {
    const Catalog::Object& object = catalog.objects()[i];
    SLUICE_ASSIGN_OR_RETURN(const auto name, JsonQuoted(object.name));
    SLUICE_ASSIGN_OR_RETURN(const auto items, ItemsText(catalog, static_cast<int>(i), &ranges));
    absl::StrAppend(&text, i > 0 ? ",\n  " : "\n  ", "{\"name\": ", name);
    if (object.bytes >= 0) absl::StrAppend(&text, ", \"bytes\": ", object.bytes);
    absl::StrAppend(&text, ", ", items, "}");
  }
  absl::StrAppend(&text, "]}\n");
  return text;
}

}  // namespace sluice
