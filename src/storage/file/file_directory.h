// The directory that a source's objects lie in, and the names it accepts for them.
#ifndef SLUICE_SRC_STORAGE_FILE_FILE_DIRECTORY_H_
#define SLUICE_SRC_STORAGE_FILE_FILE_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "net/fd.h"

namespace sluice {

// InvalidArgument unless `name` is a relative path that stays below where it starts, by its
// letters: symbolic links are followed wherever they lead.
absl::Status CheckFileName(absl::string_view name);

// Checks all names and opens the directory, for openat.
absl::StatusOr<Fd> OpenObjectDirectory(const std::string& directory,
                                       const std::vector<std::string>& names);

// How many files a source may keep open: half of what the process may, once its soft limit is as
// high as the hard one.
int OpenFilesMax();

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_FILE_DIRECTORY_H_
