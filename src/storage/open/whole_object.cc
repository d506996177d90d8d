// A GET without a range, or a file to its end.
#include "storage/open/whole_object.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/file/whole_file.h"
#include "storage/http/http_fetch.h"
#include "storage/http/http_url.h"
#include "tensor/error_text.h"

namespace sluice {

std::string ObjectPath(const SourceAddress& address, absl::string_view name) {
  return absl::StrCat(address.place, address.is_http() ? "" : "/", name);
}

absl::StatusOr<WholeObject> ReadWholeObject(const SourceAddress& address, absl::string_view name,
                                            int64_t bytes_max, const OpenOptions& options,
                                            int64_t stall_ns, const std::atomic<bool>& stop) {
  const std::string path = ObjectPath(address, name);
  if (address.is_http()) {
    SLUICE_ASSIGN_OR_RETURN(ServerPlace server, ServerOf(address, options));
    // An object that still comes is not late, unless it drips.
    server.http.stall_timeout_ns = stall_ns;
    HttpFetch what = {path};
    if (address.is_s3()) {
      SLUICE_ASSIGN_OR_RETURN(what.url, JoinHttpUrl(server.base_url, name));
      what.shown = path;
    }
    SLUICE_ASSIGN_OR_RETURN(std::string text, FetchHttpObject(what, bytes_max, server.http, &stop));
    return WholeObject{std::move(text), absl::nullopt};
  }
  SLUICE_ASSIGN_OR_RETURN(WholeFile file, ReadWholeFile(path, bytes_max));
  return WholeObject{std::move(file.text), file.identity};
}

}  // namespace sluice
