// Checks reads for every source, and names in an error what is wrong.
#ifndef SLUICE_SRC_STORAGE_SOURCE_CHECK_H_
#define SLUICE_SRC_STORAGE_SOURCE_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/source.h"

namespace sluice {

// InvalidArgument if an op names no object below `objects`, has no memory or not at kReadAlignment,
// or no bytes.
absl::Status CheckReadOps(absl::Span<const ReadOp> ops, int objects);

// "bytes 4096 to 8191 of shard-0.bin"
std::string RangeText(absl::string_view object, int64_t offset, int64_t bytes);

// The status of a system call that failed with `error` (an errno): Unavailable for what may pass
// (EIO, EAGAIN, ETIMEDOUT, ESTALE, ...), NotFound, PermissionDenied (also where the file system is
// read-only), ResourceExhausted (descriptors, memory, room on the storage), ...
absl::Status ReadErrnoStatus(int error, absl::string_view what);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_SOURCE_CHECK_H_
