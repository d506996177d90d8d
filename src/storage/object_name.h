// Checks names of objects in an index: they have to stay inside the index's own directory.
#ifndef SLUICE_SRC_STORAGE_OBJECT_NAME_H_
#define SLUICE_SRC_STORAGE_OBJECT_NAME_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

// OK for a relative path of plain components between "/": UTF-8, none of them empty, "." or "..",
// at most 255 bytes each and 1024 in all, without backslashes and control characters.
// InvalidArgument quotes the name and says what is wrong with it.
absl::Status CheckObjectName(absl::string_view name);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_OBJECT_NAME_H_
