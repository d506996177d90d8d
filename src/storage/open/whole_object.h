// One object whose length nobody knows before it is read, such as an index.
#ifndef SLUICE_SRC_STORAGE_OPEN_WHOLE_OBJECT_H_
#define SLUICE_SRC_STORAGE_OPEN_WHOLE_OBJECT_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "storage/file/file_identity.h"
#include "storage/open/open_source.h"
#include "storage/open/source_address.h"

namespace sluice {

struct WholeObject {
  std::string text;
  absl::optional<FileIdentity> identity;  // of a file: the one that was read
};

// The path or the URL of object `name` at `address`.
std::string ObjectPath(const SourceAddress& address, absl::string_view name);

// One attempt to read object `name` at `address`, which is no generator's; waits. The error has the
// object's path or URL, and is ResourceExhausted for more than `bytes_max` bytes.
//
// Over HTTP the attempt ends with Unavailable after `stall_ns` with less than 1 KiB a second. It
// ends with Cancelled soon after `stop` has become true. A call of the file system goes on to its
// end. Any thread.
absl::StatusOr<WholeObject> ReadWholeObject(const SourceAddress& address, absl::string_view name,
                                            int64_t bytes_max, const OpenOptions& options,
                                            int64_t stall_ns, const std::atomic<bool>& stop);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_OPEN_WHOLE_OBJECT_H_
