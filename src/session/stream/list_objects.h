// Lists a directory or a store without an index: its files and their headers.
#ifndef SLUICE_SRC_SESSION_STREAM_LIST_OBJECTS_H_
#define SLUICE_SRC_SESSION_STREAM_LIST_OBJECTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "session/base/own_work.h"
#include "session/stream/object_headers.h"
#include "sluice/stream.h"
#include "storage/catalog.h"
#include "storage/open/open_source.h"
#include "storage/open/source_address.h"

namespace sluice {

// The objects right below `address` whose names end in `suffix` ("": all), in the order of names.
// Hidden ones do not count. Waits as ListObjects does. NotFound: there is none. InvalidArgument: it
// is no directory and no prefix of S3, or an object that counts has a name that no file has.
absl::StatusOr<std::vector<ObjectFile>> ListFiles(const SourceAddress& address,
                                                  const std::string& suffix,
                                                  const OpenOptions& options,
                                                  const RetryOptions& retry, const WorkStop& stop);

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
