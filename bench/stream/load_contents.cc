// One reading of the index, or of the directory, for all ranks.
#include "stream/load_contents.h"

#include <string>
#include <utility>

#include "session/stream/stream_catalog.h"
#include "session/stream/stream_source.h"

namespace sluice::bench {
namespace {

absl::Status Idle() { return absl::OkStatus(); }

// Rank 0's text on all ranks.
absl::StatusOr<std::string> ShareText(absl::StatusOr<std::string> text, absl::Duration timeout,
                                      Ranks* ranks) {
  absl::Status status = ranks->AllOk(text.status(), timeout, Idle);
  if (!status.ok()) return status;
  auto all = ranks->AllGather(*text, timeout, Idle);
  if (!all.ok()) return all.status();
  return std::move(all->front());
}

absl::StatusOr<Catalog> LoadCatalog(const StreamOptions& stream, Ranks* ranks) {
  if (stream.source.uri.empty()) return Catalog();
  const auto address = ParseSourceAddress(stream.source.uri);
  absl::StatusOr<std::string> text = std::string();
  if (!address.ok()) {
    text = address.status();
  } else if (ranks->rank() == 0) {
    text = FetchCatalogText(*address, stream.source, stream.reads.retry);
  }
  text = ShareText(std::move(text), stream.timeout + stream.reads.retry.request_timeout, ranks);
  if (!text.ok()) return text.status();
  return ReadCatalogText(*text, stream.source);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Contents>> LoadContents(const StreamBenchOptions& options,
                                                       Ranks* ranks) {
  auto catalog = LoadCatalog(StreamOptionsOf(options, ranks->rank(), ranks->size()), ranks);
  if (!catalog.ok()) return catalog.status();
  return Contents::Make(options, *std::move(catalog));
}

}  // namespace sluice::bench
