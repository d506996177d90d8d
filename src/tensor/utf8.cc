// Checking UTF-8.
#include "tensor/utf8.h"

#include <cstddef>

namespace sluice {
namespace {

// Bytes after the first of the character that begins with `lead`; -1 if none does.
int TrailOf(unsigned char lead) {
  if (lead < 0x80) return 0;
  if (lead < 0xC2) return -1;
  if (lead < 0xE0) return 1;
  if (lead < 0xF0) return 2;
  return lead < 0xF5 ? 3 : -1;
}

// The byte after the first is what tells overlong forms, surrogates and too large ones apart.
bool SecondIsRight(unsigned char lead, unsigned char second) {
  const int low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const int high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return second >= low && second <= high;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int trail = TrailOf(lead);
    if (trail < 0 || text.size() - i <= static_cast<size_t>(trail)) return false;
    for (int k = 1; k <= trail; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + static_cast<size_t>(k)]);
      if (k == 1 ? !SecondIsRight(lead, byte) : (byte & 0xC0) != 0x80) return false;
    }
    i += static_cast<size_t>(trail) + 1;
  }
  return true;
}

}  // namespace sluice
