// One reader for each scheme.
#include "storage/open/open_source.h"

#include <utility>

#include "storage/file/file_source.h"
#include "storage/file/mmap_source.h"
#include "storage/http/http_source.h"
#include "storage/s3/s3_address.h"
#include "tensor/error_text.h"

namespace sluice {

absl::Status FindAccess(const SourceAddress& address, OpenOptions* options) {
  if (!address.is_s3() || options->s3_access != nullptr) return absl::OkStatus();
  SLUICE_ASSIGN_OR_RETURN(options->s3_access, FindS3Access(options->s3));
  return absl::OkStatus();
}

absl::StatusOr<ServerPlace> ServerOf(const SourceAddress& address, OpenOptions options) {
  ServerPlace server = {address.place, {}};
  HttpOptions& http = server.http;
  http.connections_per_host = options.connections;
  http.connections_max = options.connections;
  http.timeout_ns = INT64_MAX;
  http.stall_timeout_ns = INT64_MAX;
  http.ca_file = options.ca_file;
  http.object_bytes = options.object_bytes;
  http.versions = options.states.versions;
  if (!address.is_s3()) return server;
  SLUICE_RETURN_IF_ERROR(FindAccess(address, &options));
  SLUICE_ASSIGN_OR_RETURN(const S3Address place, ParseS3Address(address.place));
  const S3Access& access = *options.s3_access;
  server.base_url = S3BaseUrl(place, access.endpoint(), access.region());
  http.signer = options.s3_access;
  return server;
}

absl::StatusOr<std::unique_ptr<Source>> OpenSource(const SourceAddress& address,
                                                   std::vector<std::string> names,
                                                   const OpenOptions& options) {
  if (address.is_http()) {
    SLUICE_ASSIGN_OR_RETURN(const ServerPlace server, ServerOf(address, options));
    return MakeHttpSource(server.base_url, names, server.http);
  }
  if (address.scheme == "mmap") {
    return MakeMmapSource(
        address.place, std::move(names),
        {.identities = options.states.identities, .read_ahead = options.read_ahead});
  }
  FileSourceOptions file;
  file.access = address.scheme == "file" ? FileAccess::kDirect : FileAccess::kBuffered;
  file.in_flight_max = options.in_flight_max;
  file.identities = options.states.identities;
  return MakeFileSource(address.place, std::move(names), file);
}

}  // namespace sluice
