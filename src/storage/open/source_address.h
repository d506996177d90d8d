// The address of objects, as a user writes it.
#ifndef SLUICE_SRC_STORAGE_OPEN_SOURCE_ADDRESS_H_
#define SLUICE_SRC_STORAGE_OPEN_SOURCE_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// The scheme of a source's address and the rest: "file" and "/data" of "file:/data".
struct SourceAddress {
  std::string scheme;  // "file", "buffered", "mmap", "http", "https", "s3"; empty: a generator
  // The directory; of the others the whole address, with a '/' at its end.
  std::string place;

  bool is_s3() const { return scheme == "s3"; }
  // Objects come from a server.
  bool is_http() const { return scheme == "http" || scheme == "https" || is_s3(); }
};
// InvalidArgument for anything else.
absl::StatusOr<SourceAddress> ParseSourceAddress(absl::string_view uri);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_OPEN_SOURCE_ADDRESS_H_
