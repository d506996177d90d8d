// Checking UTF-8.
#include "tensor/utf8.h"

#include <array>
#include <cstddef>

namespace sluice {

size_t Utf8SequenceBytes(absl::string_view text) {
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

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t bytes = Utf8SequenceBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace sluice
