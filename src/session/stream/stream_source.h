// Opens the source of a stream as its options say.
#ifndef SLUICE_SRC_SESSION_STREAM_STREAM_SOURCE_H_
#define SLUICE_SRC_SESSION_STREAM_STREAM_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "session/stream/stream_items.h"
#include "sluice/stream.h"
#include "sluice/testing.h"
#include "storage/catalog.h"
#include "storage/generator_source.h"
#include "storage/open/open_source.h"
#include "storage/open/source_address.h"
#include "storage/source.h"

namespace sluice {

OpenOptions OpenOptionsOf(const StreamSource& source);

struct OpenedSource {
  std::unique_ptr<StreamItems> items;
  std::unique_ptr<Source> source;
  GeneratorSource* generator = nullptr;  // within `source`, if that is one
  bool whole_items = false;              // it cannot give parts of items
};

// A reader of `catalog`, `in_flight_max` reads at once. The catalog's types hold, or the
// transform's where there is one.
absl::StatusOr<OpenedSource> OpenCatalog(const SourceAddress& address, const StreamOptions& options,
                                         const InjectedDelay& delay, Catalog catalog,
                                         int in_flight_max);
absl::StatusOr<OpenedSource> OpenGenerator(const StreamOptions& options,
                                           const InjectedDelay& delay);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_STREAM_SOURCE_H_
