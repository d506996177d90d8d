// Quoting text for messages.
#include "tensor/quoted.h"

#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tensor/utf8.h"

namespace sluice {
namespace {

// Bytes of the control character that UTF-8 begins with, if that is not of ASCII; 0 if it is none.
size_t WideControlBytes(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.size() < 2) return 0;
  // U+0080 to U+009F, of which terminals obey some.
  if (byte(0) == 0xC2 && byte(1) < 0xA0) return 2;
  if (byte(0) == 0xD8 && byte(1) == 0x9C) return 2;  // U+061C
  if (byte(0) != 0xE2 || text.size() < 3) return 0;
  // U+200E and U+200F, U+2028 to U+202E.
  const bool marks = byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xA8 && byte(2) <= 0xAE);
  if (byte(1) == 0x80 && marks) return 3;
  return byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9 ? 3 : 0;  // U+2066 to U+2069
}

std::string InQuotes(absl::string_view quote, absl::string_view text, size_t most_bytes) {
  const bool is_long = text.size() > most_bytes;
  if (is_long) {
    text = text.substr(0, most_bytes);
    // Do not end within a character: its bytes after the first are 10xxxxxx.
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) {
      text.remove_suffix(1);
    }
    if (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80) != 0) {
      text.remove_suffix(1);
    }
  }
  const std::string escaped =
      Escaped(IsUtf8(text) ? absl::Utf8SafeCHexEscape(text) : absl::CHexEscape(text));
  return absl::StrCat(quote, escaped, is_long ? "..." : "", quote);
}

}  // namespace

std::string Escaped(absl::string_view text) {
  const bool is_utf8 = IsUtf8(text);
  std::string escaped;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const bool is_ascii = first < 0x80;
    size_t bytes = is_ascii || !is_utf8 ? 1 : WideControlBytes(text);
    const bool plain = is_ascii ? first >= ' ' && first != 0x7F : is_utf8 && bytes == 0;
    if (plain) {
      escaped += text.front();
      bytes = 1;
    } else {
      absl::StrAppend(&escaped, absl::CHexEscape(text.substr(0, bytes)));
    }
    text.remove_prefix(bytes);
  }
  return escaped;
}

std::string Quoted(absl::string_view text) { return InQuotes("\"", text, 120); }

std::string InSingleQuotes(absl::string_view text, size_t most_bytes) {
  return InQuotes("'", text, most_bytes);
}

std::string QuotedPath(absl::string_view path) { return InSingleQuotes(path, path.size()); }

}  // namespace sluice
