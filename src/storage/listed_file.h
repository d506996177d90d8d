// Finds the entries of a directory that are its data: one rule for streams and for checkpoints.
#ifndef SLUICE_SRC_STORAGE_LISTED_FILE_H_
#define SLUICE_SRC_STORAGE_LISTED_FILE_H_

#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// Whether an entry counts: a file, or a link to one, with this extension ("": any), and not hidden
// (its name begins with a dot). Folders, pipes and sockets do not count.
//
// InvalidArgument, with the name in quotes, for an entry that would count but for its name
// (CheckObjectName). The same for a link that leads nowhere: a part of the data is missing then.
// Other errors are those of asking what the entry is.
absl::StatusOr<bool> CountsAsData(const std::filesystem::directory_entry& entry,
                                  absl::string_view extension);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_LISTED_FILE_H_
