// JSON strings by the rules of RFC 8259, and exact decimal fractions.
#include "trace/json_text.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"
#include "tensor/utf8.h"

namespace sluice {
namespace {

// Appends one sequence of at least one byte.
void AppendEscaped(std::string* out, absl::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (first == '"' || first == '\\') {
    absl::StrAppend(out, "\\", sequence);
  } else if (first < 0x20) {
    absl::StrAppend(out, "\\u", absl::Hex(first, absl::kZeroPad4));
  } else {
    absl::StrAppend(out, sequence);
  }
}

}  // namespace

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = Utf8SequenceBytes(text);
    if (length == 0) {
      out += "\\ufffd";
      text.remove_prefix(1);
    } else {
      AppendEscaped(&out, text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  out += '"';
  return out;
}

std::string JsonMicroseconds(int64_t ns) {
  SLUICE_CHECK(ns >= 0, "viewers refuse negative times");
  return absl::StrCat(ns / 1000, ".", absl::Dec(ns % 1000, absl::kZeroPad3));
}

}  // namespace sluice
