// Removing a file that several processes may replace, where no lock keeps them apart.
#ifndef SLUICE_SRC_STORAGE_FILE_REMOVE_SAME_H_
#define SLUICE_SRC_STORAGE_FILE_REMOVE_SAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "storage/file/file_identity.h"

namespace sluice {

// Removes the file that `path` names if it is still `known`, under whatever name it was then. True
// if nothing has the name afterwards. False if another file had it: that file stays.
//
// The name is taken away, then what had it is looked at, and put back if it is another file. So a
// file that takes the name between two steps may lack the name for a moment. The file is lost to
// its name only if this process ends in that moment. Waits for the file system. The error names the
// path.
absl::StatusOr<bool> RemoveSame(const std::string& path, const absl::optional<FileIdentity>& known);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_REMOVE_SAME_H_
