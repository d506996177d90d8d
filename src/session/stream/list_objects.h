// Lists a directory or a store without an index: its files and their headers.
#ifndef SLUICE_SRC_SESSION_STREAM_LIST_OBJECTS_H_
#define SLUICE_SRC_SESSION_STREAM_LIST_OBJECTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "session/base/own_work.h"
#include "sluice/stream.h"
#include "storage/catalog.h"
#include "storage/open/source_address.h"

namespace sluice {

// Lists a directory and reads the headers of its files. The text holds names, sizes and headers,
// and so all that other ranks need to know: "BYTES NAME_BYTES HEADER_BYTES\n", the name and the
// header, of each file. Waits for the storage, with retries; gives up once `stop` is set. Any
// thread.
absl::StatusOr<std::string> ListObjects(const SourceAddress& address, const StreamSource& source,
                                        const RetryOptions& retry, const WorkStop& stop);

// The objects of such a text, and their items.
absl::StatusOr<Catalog> ReadListing(absl::string_view listing, const StreamSource& source);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_LIST_OBJECTS_H_
