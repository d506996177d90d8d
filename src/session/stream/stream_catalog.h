// Finds a stream's catalog: a text, which one rank fetches and all can read.
#ifndef SLUICE_SRC_SESSION_STREAM_STREAM_CATALOG_H_
#define SLUICE_SRC_SESSION_STREAM_STREAM_CATALOG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "session/base/own_work.h"
#include "sluice/stream.h"
#include "storage/catalog.h"
#include "storage/open/source_address.h"

namespace sluice {

// The index that is given, that beside the objects, or what a directory without one has. Waits for
// the storage; what is transient is tried again as `retry` says. Gives up once `stop`, if there is
// one, is set. Any thread.
absl::StatusOr<std::string> FetchCatalogText(const SourceAddress& address,
                                             const StreamSource& source, const RetryOptions& retry,
                                             const WorkStop* stop = nullptr);

// The catalog that such a text describes.
absl::StatusOr<Catalog> ReadCatalogText(absl::string_view text, const StreamSource& source);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_STREAM_CATALOG_H_
