// Names that users give, in messages.
#ifndef SLUICE_SRC_TENSOR_QUOTED_NAME_H_
#define SLUICE_SRC_TENSOR_QUOTED_NAME_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

// "'model.norm.weight'"; the rest of a long name is left out. Quotes, and bytes that are no text,
// show as escapes, so that nothing of the name reads like the message.
std::string QuotedName(absl::string_view name, size_t most_bytes = 60);

// "tensor 'model.norm.weight'", "tensor 3 'model.norm.weight'"; all but very long names are whole.
std::string TensorInWords(absl::string_view name);
std::string TensorInWords(size_t number, absl::string_view name);

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_QUOTED_NAME_H_
