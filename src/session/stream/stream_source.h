// From what a user says of a stream's source to something that reads.
#ifndef SLUICE_SRC_SESSION_STREAM_SOURCE_H_
#define SLUICE_SRC_SESSION_STREAM_SOURCE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "session/stream_items.h"
#include "sluice/stream.h"
#include "storage/catalog.h"
#include "storage/http_options.h"
#include "storage/source.h"

namespace sluice {

// The scheme of a source's address and the rest: "file" and "/data" of "file:/data".
struct SourceAddress {
  std::string scheme;  // "file", "buffered", "mmap", "http", "https"; empty: a generator
  // The directory, or the whole address of http and https, with a '/' at its end.
  std::string place;

  bool is_http() const { return scheme == "http" || scheme == "https"; }
};
// InvalidArgument for anything else.
absl::StatusOr<SourceAddress> ParseSourceAddress(absl::string_view uri);

// How an HTTP source is asked.
HttpOptions HttpOptionsOf(const StreamSource& source);

struct OpenedSource {
  std::unique_ptr<StreamItems> items;
  std::unique_ptr<Source> source;
  std::function<void(int64_t item)> end_update;  // of a generator; or null
  bool whole_items = false;                      // it cannot give parts of items
};

// A reader of `catalog`, `in_flight_max` reads at once. The catalog's types hold, or the
// transform's where there is one.
absl::StatusOr<OpenedSource> OpenCatalog(const SourceAddress& address, const StreamOptions& options,
                                         Catalog catalog, int in_flight_max);
absl::StatusOr<OpenedSource> OpenGenerator(const StreamOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_SOURCE_H_
