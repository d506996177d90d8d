// Finds tags, and replaces entities.
#include "storage/s3/s3_xml.h"

#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace sluice {
namespace {

void AppendUtf8(uint32_t code, std::string* text) {
  const auto tail = [&](int shift) {
    *text += static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
  };
  if (code < 0x80) {
    *text += static_cast<char>(code);
  } else if (code < 0x800) {
    *text += static_cast<char>(0xC0U | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    *text += static_cast<char>(0xE0U | (code >> 12));
    tail(6);
    tail(0);
  } else {
    *text += static_cast<char>(0xF0U | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// `name`: between '&' and ';'.
bool AppendEntity(absl::string_view name, std::string* text) {
  constexpr std::pair<absl::string_view, char> kNamed[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [known, meaning] : kNamed) {
    if (name != known) continue;
    *text += meaning;
    return true;
  }
  uint32_t code = 0;
  if (!absl::ConsumePrefix(&name, "#")) return false;
  const bool is_number = absl::ConsumePrefix(&name, "x") ? absl::SimpleHexAtoi(name, &code)
                                                         : absl::SimpleAtoi(name, &code);
  if (!is_number || code == 0 || code > 0x10FFFF) return false;
  AppendUtf8(code, text);
  return true;
}

}  // namespace

absl::optional<absl::string_view> XmlField(absl::string_view xml, absl::string_view name,
                                           absl::string_view* after) {
  const std::string open = absl::StrCat("<", name, ">");
  const std::string close = absl::StrCat("</", name, ">");
  const size_t begin = xml.find(open);
  if (begin == xml.npos) return absl::nullopt;
  const absl::string_view rest = xml.substr(begin + open.size());
  const size_t end = rest.find(close);
  if (end == rest.npos) return absl::nullopt;
  if (after != nullptr) *after = rest.substr(end + close.size());
  return rest.substr(0, end);
}

absl::optional<std::string> XmlText(absl::string_view text) {
  std::string plain;
  while (true) {
    const size_t mark = text.find('&');
    absl::StrAppend(&plain, text.substr(0, mark));
    if (mark == text.npos) return plain;
    const size_t end = text.find(';', mark);
    if (end == text.npos || !AppendEntity(text.substr(mark + 1, end - mark - 1), &plain)) {
      return absl::nullopt;
    }
    text.remove_prefix(end + 1);
  }
}

}  // namespace sluice
