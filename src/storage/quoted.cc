// Quoting text of a file for messages.
#include "storage/quoted.h"

#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "storage/utf8.h"

namespace sluice {

std::string Quoted(absl::string_view text) {
  constexpr size_t kMostBytes = 120;
  const bool is_long = text.size() > kMostBytes;
  if (is_long) {
    text = text.substr(0, kMostBytes);
    // Do not end within a character: its bytes after the first are 10xxxxxx.
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) {
      text.remove_suffix(1);
    }
    if (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80) != 0) {
      text.remove_suffix(1);
    }
  }
  const std::string escaped =
      IsUtf8(text) ? absl::Utf8SafeCHexEscape(text) : absl::CHexEscape(text);
  return absl::StrCat("\"", escaped, is_long ? "...\"" : "\"");
}

}  // namespace sluice
