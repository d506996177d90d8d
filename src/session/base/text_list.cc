// Writes each text after its length, in decimal, and a blank.
#include "session/base/text_list.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace sluice {

std::string JoinTexts(absl::Span<const std::string> texts) {
  std::string joined;
  for (const std::string& text : texts) absl::StrAppend(&joined, text.size(), " ", text);
  return joined;
}

absl::StatusOr<std::vector<std::string>> SplitTexts(absl::string_view joined) {
  std::vector<std::string> texts;
  while (!joined.empty()) {
    const size_t blank = joined.find(' ');
    uint64_t bytes = 0;
    if (blank == joined.npos || !absl::SimpleAtoi(joined.substr(0, blank), &bytes) ||
        bytes > joined.size() - blank - 1) {
      return absl::InternalError("a list of texts that another rank sent is damaged");
    }
    joined.remove_prefix(blank + 1);
    texts.emplace_back(joined.substr(0, static_cast<size_t>(bytes)));
    joined.remove_prefix(static_cast<size_t>(bytes));
  }
  return texts;
}

}  // namespace sluice
