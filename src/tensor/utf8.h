// Tells whether bytes are UTF-8.
#ifndef SLUICE_SRC_TENSOR_UTF8_H_
#define SLUICE_SRC_TENSOR_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace sluice {

// How many bytes of the start of `text` (not empty) are one well-formed sequence, as the Unicode
// standard's table 3-7 has it; 0 if none. No overlong forms, no surrogates, nothing past U+10FFFF.
size_t Utf8SequenceBytes(absl::string_view text);
bool IsUtf8(absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_UTF8_H_
