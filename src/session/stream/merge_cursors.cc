// Cursors as users see them: texts.
#include <string>
#include <vector>

#include "plan/shard/cursor.h"
#include "sluice/stream.h"
#include "tensor/error_text.h"

namespace sluice {

absl::StatusOr<std::string> MergeCursors(absl::Span<const std::string> cursors) {
  std::vector<Cursor> parsed;
  for (const std::string& text : cursors) {
    SLUICE_ASSIGN_OR_RETURN(Cursor cursor, Cursor::Parse(text));
    parsed.push_back(std::move(cursor));
  }
  SLUICE_ASSIGN_OR_RETURN(const Cursor merged, MergeCursors(absl::MakeConstSpan(parsed)));
  return merged.ToText();
}

}  // namespace sluice
