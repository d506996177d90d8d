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

// The same in single quotes: "'model.norm.weight'". The rest of a long name is left out.
std::string QuotedName(absl::string_view name, size_t most_bytes = 60);
// All of a path: a folder may be named "rank 3".
std::string QuotedPath(absl::string_view path);

// "tensor 'model.norm.weight'", "tensor 3 'model.norm.weight'"; all but very long names are whole.
std::string TensorInWords(absl::string_view name);
std::string TensorInWords(size_t number, absl::string_view name);

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_QUOTED_H_
