// What is in a directory without an index: its files and their headers.
#ifndef SLUICE_SRC_SESSION_LIST_OBJECTS_H_
#define SLUICE_SRC_SESSION_LIST_OBJECTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "session/stream_source.h"
#include "sluice/stream.h"
#include "storage/catalog.h"

namespace sluice {

// Lists a directory and reads the headers of its files; blocks. The text holds names, sizes and
// headers, and so all that other ranks need to know: "BYTES NAME_BYTES HEADER_BYTES\n", the name
// and the header, of each file.
absl::StatusOr<std::string> ListObjects(const SourceAddress& address, const StreamSource& source);

// The objects of such a text, and their items.
absl::StatusOr<Catalog> ReadListing(absl::string_view listing, const StreamSource& source);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_LIST_OBJECTS_H_
