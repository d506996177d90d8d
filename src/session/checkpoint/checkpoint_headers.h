// The headers of a checkpoint's files, and how the files are opened.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_HEADERS_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_HEADERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "session/base/own_work.h"
#include "session/checkpoint/checkpoint_catalog.h"
#include "session/checkpoint/given_catalog.h"
#include "sluice/checkpoint.h"
#include "storage/file/file_identity.h"
#include "storage/format/safetensors.h"
#include "storage/http/http_version.h"
#include "storage/open/open_source.h"
#include "storage/open/source_address.h"
#include "storage/source.h"

namespace sluice {

OpenOptions OpenOptionsOf(const CheckpointOptions& options);

// Nothing is known yet of `files` at `address`.
FileStates NewFileStates(const SourceAddress& address, const std::vector<std::string>& files);
// The states of the catalog's files, as the catalog has them.
FileStates FileStatesOf(const SourceAddress& address, const CheckpointCatalog& catalog);

// A reader of `files`, `in_flight_max` reads at once.
absl::StatusOr<std::unique_ptr<Source>> OpenFiles(const SourceAddress& address,
                                                  const std::vector<std::string>& files,
                                                  const CheckpointOptions& options,
                                                  int in_flight_max, const FileStates& states);

// The same for first looks at headers: through the page cache, as more of their pages is read soon.
absl::StatusOr<std::unique_ptr<Source>> OpenForLooks(SourceAddress address,
                                                     const std::vector<std::string>& files,
                                                     const CheckpointOptions& options,
                                                     const FileStates& states);

struct CheckpointHeaders {
  std::vector<SafetensorsHeader> headers;  // of the files, in their order
  std::vector<FileIdentity> identities;    // where they are files of a directory
  // Over HTTP, as CheckpointCatalog has them:
  HttpVersions versions;
  std::vector<std::string> beginnings;
  int64_t bytes = 0;  // read
};
// Two reads of each file: how long its header is, and the header. Waits for the storage; gives up
// once `stop` is set. Errors as FindTensors.
absl::StatusOr<CheckpointHeaders> ReadHeaders(const SourceAddress& address,
                                              const std::vector<std::string>& files,
                                              const CheckpointOptions& options,
                                              const WorkStop& stop);

// Looks at the files of a given catalog, one read of each, and finds which state they are in. Waits
// as ReadHeaders does. NotFound: there is no such file. DataLoss: it ends before its arrays do.
absl::StatusOr<CheckpointCatalog> LookAtArrays(const SourceAddress& address,
                                               const StoredArrays& arrays,
                                               const CheckpointOptions& options,
                                               const WorkStop& stop);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_HEADERS_H_
