// Fuzz target: whatever the text is, a shard index is an error or a catalog of items inside their
// objects, which can be written and read again.

#include "fuzz/fuzz_bytes.h"
#include "storage/format/shard_index.h"
#include "storage/object_name.h"

SLUICE_FUZZ_TARGET(shard_index) {
  using namespace sluice;  // NOLINT(google-build-using-namespace): the target is outside
  const auto index = ParseShardIndex(TextOf(data, size));
  if (!index.ok()) {
    CheckError(index.status());
    return 0;
  }
  CheckInside(index->catalog);
  for (const Catalog::Object& object : index->catalog.objects()) {
    SLUICE_CHECK(CheckObjectName(object.name).ok(), "a name that leads elsewhere");
  }
  const auto text = ShardIndexText(index->format, index->catalog);
  SLUICE_CHECK(text.ok(), "an index that was read cannot be written");
  const auto again = ParseShardIndex(*text);
  SLUICE_CHECK(again.ok(), "what was written cannot be read");
  SLUICE_CHECK(again->catalog.items() == index->catalog.items(), "another number of items");
  SLUICE_CHECK(*ShardIndexText(again->format, again->catalog) == *text, "another catalog");
  return 0;
}
