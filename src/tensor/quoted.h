// Names and other text of users and files, as they may stand in a message: short, and without what
// a terminal obeys.
#ifndef SLUICE_SRC_TENSOR_QUOTED_H_
#define SLUICE_SRC_TENSOR_QUOTED_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

// `text` on one line: control characters, among them those that turn text around, and bytes that
// are not UTF-8 are escaped as in C. Quotes and backslashes stay.
std::string Escaped(absl::string_view text);

// `text` in quotes, cut after 120 bytes; escaped, as quotes and backslashes are.
std::string Quoted(absl::string_view text);

// The same in single quotes, cut after `most_bytes`.
std::string InSingleQuotes(absl::string_view text, size_t most_bytes);
// All of a path: a folder may be named "rank 3".
std::string QuotedPath(absl::string_view path);

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_QUOTED_H_
