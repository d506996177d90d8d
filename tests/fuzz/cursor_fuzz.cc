// Fuzz target: whatever the text is, it is no cursor, or one that is written and merged as it was
// read.
#include "fuzz/fuzz_bytes.h"
#include "plan/shard/cursor.h"

SLUICE_FUZZ_TARGET(cursor) {
  using sluice::Cursor;
  const absl::StatusOr<Cursor> cursor = Cursor::Parse(sluice::TextOf(data, size));
  if (!cursor.ok()) {
    sluice::CheckError(cursor.status());
    return 0;
  }
  const std::string text = cursor->ToText();
  SLUICE_CHECK(text.size() <= Cursor::kBytesMax, "a cursor that is too long");
  const absl::StatusOr<Cursor> again = Cursor::Parse(text);
  SLUICE_CHECK(again.ok() && again->ToText() == text, "a cursor that is read as another one");
  const absl::StatusOr<Cursor> merged = sluice::MergeCursors({*cursor, *again});
  if (!merged.ok()) {
    sluice::CheckError(merged.status());
    return 0;
  }
  SLUICE_CHECK(Cursor::Parse(merged->ToText()).ok(), "a merged cursor that is none");
  return 0;
}
