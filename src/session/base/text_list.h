// Several texts as one, for messages between ranks: whatever bytes they have.
#ifndef SLUICE_SRC_SESSION_BASE_TEXT_LIST_H_
#define SLUICE_SRC_SESSION_BASE_TEXT_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice {

// Lengths instead of separators: names of files may have any byte but 0.
std::string JoinTexts(absl::Span<const std::string> texts);

// Internal: it is not what JoinTexts gave.
absl::StatusOr<std::vector<std::string>> SplitTexts(absl::string_view joined);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_TEXT_LIST_H_
