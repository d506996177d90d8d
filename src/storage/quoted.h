// Text from a file, as it may stand in a message: short, and without what a terminal obeys.
#ifndef SLUICE_SRC_STORAGE_QUOTED_H_
#define SLUICE_SRC_STORAGE_QUOTED_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

// `text` in quotes, cut after 120 bytes; control characters and bytes that are not UTF-8 escaped.
std::string Quoted(absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_QUOTED_H_
