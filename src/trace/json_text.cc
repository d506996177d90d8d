// JSON strings by the rules of RFC 8259, and exact decimal fractions.
#include "trace/json_text.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// How many bytes of the start of `text` (not empty) are one well-formed UTF-8 sequence; 0 if none.
size_t SequenceLength(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  struct Form {
    unsigned char first_low, first_high;    // first byte
    unsigned char second_low, second_high;  // second byte: no overlong forms, no surrogates
    size_t length;
  };
  // Table 3-7 of the Unicode standard.
  static constexpr std::array<Form, 8> kForms = {{{0xC2, 0xDF, 0x80, 0xBF, 2},
                                                  {0xE0, 0xE0, 0xA0, 0xBF, 3},
                                                  {0xE1, 0xEC, 0x80, 0xBF, 3},
                                                  {0xED, 0xED, 0x80, 0x9F, 3},
                                                  {0xEE, 0xEF, 0x80, 0xBF, 3},
                                                  {0xF0, 0xF0, 0x90, 0xBF, 4},
                                                  {0xF1, 0xF3, 0x80, 0xBF, 4},
                                                  {0xF4, 0xF4, 0x80, 0x8F, 4}}};
  if (byte(0) < 0x80) return 1;
  for (const Form& form : kForms) {
    if (byte(0) < form.first_low || byte(0) > form.first_high) continue;
    if (text.size() < form.length) return 0;
    if (byte(1) < form.second_low || byte(1) > form.second_high) return 0;
    for (size_t i = 2; i < form.length; ++i) {
      if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
    }
    return form.length;
  }
  return 0;
}

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
    const size_t length = SequenceLength(text);
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
