// Makes a reader of the objects at an address: the one place where readers are made.
#ifndef SLUICE_SRC_STORAGE_OPEN_OPEN_SOURCE_H_
#define SLUICE_SRC_STORAGE_OPEN_OPEN_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/s3.h"
#include "storage/file/file_identity.h"
#include "storage/http/http_options.h"
#include "storage/http/http_version.h"
#include "storage/open/source_address.h"
#include "storage/s3/s3_access.h"
#include "storage/source.h"

namespace sluice {

// The known states of the objects, to which a reader adds. So each object is in one state from the
// first look to the last, whichever rank looks.
struct FileStates {
  std::shared_ptr<FileIdentities> identities;  // of files of a directory; or null
  std::shared_ptr<HttpVersions> versions;      // of objects over HTTP; or null
};

struct OpenOptions {
  int in_flight_max = 128;  // reads of files at once
  int connections = 64;     // at most, to one HTTP server
  std::string ca_file;      // certificates to trust, instead of the system's
  S3Options s3;
  std::shared_ptr<S3Access> s3_access;  // what `s3` leads to; null: not looked for yet
  // Over HTTP: sizes of the objects, -1 where a size is not known. Empty: no size is known.
  std::vector<int64_t> object_bytes;
  FileStates states;
  bool read_ahead = true;  // of mapped files: as MmapSourceOptions has it
};

// Looks for the access to a store once, for several calls with these options. Errors are those of
// FindS3Access.
absl::Status FindAccess(const SourceAddress& address, OpenOptions* options);

// The place of objects on a server, and how it is asked. There is no time limit: which request is
// late is for the caller to say, who tries it again.
struct ServerPlace {
  std::string base_url;
  HttpOptions http;
};
absl::StatusOr<ServerPlace> ServerOf(const SourceAddress& address, OpenOptions options);

// A reader of the objects `names` at `address`, which is no generator's. Errors are those of
// MakeHttpSource, MakeMmapSource, MakeFileSource and FindS3Access.
absl::StatusOr<std::unique_ptr<Source>> OpenSource(const SourceAddress& address,
                                                   std::vector<std::string> names,
                                                   const OpenOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_OPEN_OPEN_SOURCE_H_
