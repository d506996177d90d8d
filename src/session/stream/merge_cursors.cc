// Cursors as users see them: texts.
#include <string>
#include <vector>

#include "plan/shard/cursor.h"
#include "sluice/stream.h"

namespace sluice {

absl::StatusOr<std::string> MergeCursors(absl::Span<const std::string> cursors) {
  std::vector<Cursor> parsed;
  for (const std::string& text : cursors) {
    absl::StatusOr<Cursor> cursor = Cursor::Parse(text);
    if (!cursor.ok()) return cursor.status();
    parsed.push_back(*std::move(cursor));
  }
  const absl::StatusOr<Cursor> merged = MergeCursors(absl::MakeConstSpan(parsed));
  if (!merged.ok()) return merged.status();
  return merged->ToText();
}

}  // namespace sluice
