// Fuzz target: whatever the text is, a checkpoint's index is an error or names files inside its
// directory, and can be written and read again.

#include "fuzz/fuzz_bytes.h"
#include "storage/format/checkpoint_index.h"
#include "storage/object_name.h"

SLUICE_FUZZ_TARGET(checkpoint_index) {
  using namespace sluice;  // NOLINT(google-build-using-namespace): the target is outside
  const auto index = ParseCheckpointIndex(TextOf(data, size));
  if (!index.ok()) {
    CheckError(index.status());
    return 0;
  }
  for (size_t i = 0; i < index->files.size(); ++i) {
    SLUICE_CHECK(CheckObjectName(index->files[i]).ok(), "a name that leads elsewhere");
    SLUICE_CHECK(i == 0 || index->files[i - 1] < index->files[i], "files out of order");
  }
  for (size_t i = 0; i < index->tensors.size(); ++i) {
    const auto& entry = index->tensors[i];
    SLUICE_CHECK(static_cast<size_t>(entry.file) < index->files.size(), "no such file");
    SLUICE_CHECK(i == 0 || index->tensors[i - 1].tensor < entry.tensor, "tensors out of order");
  }
  const auto text = CheckpointIndexText(*index);
  SLUICE_CHECK(text.ok(), "an index that was read cannot be written");
  const auto again = ParseCheckpointIndex(*text);
  SLUICE_CHECK(again.ok(), "what was written cannot be read");
  SLUICE_CHECK(again->files == index->files, "other files");
  SLUICE_CHECK(again->total_bytes == index->total_bytes, "another total");
  SLUICE_CHECK(*CheckpointIndexText(*again) == *text, "another index");
  return 0;
}
