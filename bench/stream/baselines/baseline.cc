// What the plain loaders read from.
#include "stream/baselines/baseline.h"

#include <utility>

#include "stream/contents.h"

namespace sluice::bench {

absl::StatusOr<OpenedSource> OpenBaselineSource(const StreamOptions& stream,
                                                const InjectedDelay& delay, int in_flight_max) {
  if (stream.source.uri.empty()) return OpenGenerator(stream, delay);
  const auto catalog = FindCatalog(stream);
  if (!catalog.ok()) return catalog.status();
  return OpenBaselineSource(stream, delay, *catalog, in_flight_max);
}

absl::StatusOr<OpenedSource> OpenBaselineSource(const StreamOptions& stream,
                                                const InjectedDelay& delay, const Catalog& catalog,
                                                int in_flight_max) {
  if (stream.source.uri.empty()) return OpenGenerator(stream, delay);
  const auto address = ParseSourceAddress(stream.source.uri);
  if (!address.ok()) return address.status();
  return OpenCatalog(*address, stream, delay, catalog, in_flight_max);
}

}  // namespace sluice::bench
