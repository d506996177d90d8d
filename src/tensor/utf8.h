// Tells whether bytes are UTF-8.
#ifndef SLUICE_SRC_TENSOR_UTF8_H_
#define SLUICE_SRC_TENSOR_UTF8_H_

#include "absl/strings/string_view.h"

namespace sluice {

// True for well-formed UTF-8 as the Unicode standard's table 3-7 has it: no overlong forms, no
// surrogates, nothing past U+10FFFF.
bool IsUtf8(absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_UTF8_H_
