// The two things of JSON that take care: strings, and times in microseconds without rounding.
#ifndef SLUICE_SRC_TRACE_JSON_TEXT_H_
#define SLUICE_SRC_TRACE_JSON_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

// `text` in quotes. Bytes that are not UTF-8 become U+FFFD, so that readers take the whole.
std::string JsonString(absl::string_view text);

// Nanoseconds, not negative, as a number of microseconds with three decimals.
std::string JsonMicroseconds(int64_t ns);

}  // namespace sluice

#endif  // SLUICE_SRC_TRACE_JSON_TEXT_H_
