// One reader for each scheme.
#include "storage/open/open_source.h"

#include <utility>

#include "storage/file/file_source.h"
#include "storage/file/mmap_source.h"
#include "storage/http/http_source.h"

namespace sluice {

HttpOptions HttpOptionsOf(const OpenOptions& options) {
  HttpOptions http;
  http.connections_per_host = options.connections;
  http.connections_max = options.connections;
  http.timeout_ns = INT64_MAX;
  http.stall_timeout_ns = INT64_MAX;
  http.ca_file = options.ca_file;
  http.object_bytes = options.object_bytes;
  http.versions = options.states.versions;
  return http;
}

absl::StatusOr<std::unique_ptr<Source>> OpenSource(const SourceAddress& address,
                                                   std::vector<std::string> names,
                                                   const OpenOptions& options) {
  if (address.is_http()) return MakeHttpSource(address.place, names, HttpOptionsOf(options));
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
