// A source that reads ranges of objects from an HTTP or HTTPS server.
#ifndef SLUICE_SRC_STORAGE_HTTP_HTTP_SOURCE_H_
#define SLUICE_SRC_STORAGE_HTTP_HTTP_SOURCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/http/http_options.h"
#include "storage/source.h"

namespace sluice {

// Object i is `names[i]` below `base_url` (JoinHttpUrl). Nothing is asked of the server yet.
//
// Each read is one GET with a Range, over HTTP/1.1 and connections that are kept. Reads beyond the
// limit of connections wait in the order in which they were started. Beside the seam's codes:
// FailedPrecondition for a certificate that is not trusted and for a redirection (none is
// followed). Unknown and InvalidArgument for answers that no other try would change. A request that
// is late by `options` is Unavailable; a caller that does not poll for so long makes it late.
// Proxies are taken from the environment, as by curl.
//
// An object has to stay as it was first met, or be of the version that `options` have. A read ends
// with DataLoss if the server says by ETag or Last-Modified that the object is another one. A read
// that is tried again does too.
//
// InvalidArgument for a URL, a name or an option that makes no sense.
absl::StatusOr<std::unique_ptr<Source>> MakeHttpSource(absl::string_view base_url,
                                                       absl::Span<const std::string> names,
                                                       const HttpOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_HTTP_HTTP_SOURCE_H_
