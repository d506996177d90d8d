// Small files that are read as a whole, such as an index.
#ifndef SLUICE_SRC_STORAGE_FILE_WHOLE_FILE_H_
#define SLUICE_SRC_STORAGE_FILE_WHOLE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "storage/file/file_identity.h"

namespace sluice {

struct WholeFile {
  std::string text;
  FileIdentity identity;  // of the file that it was read from
};

// Waits for the file system, but for nobody at the other end of a pipe. The error names the path:
// NotFound, PermissionDenied; InvalidArgument if it is no file, ResourceExhausted if it has more
// than `bytes_max` bytes, of which not more are read then.
absl::StatusOr<WholeFile> ReadWholeFile(const std::string& path, int64_t bytes_max);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_WHOLE_FILE_H_
