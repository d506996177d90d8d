// One reading of the index for all ranks.
#include "stream/load_contents.h"

#include <string>
#include <utility>

#include "session/stream_source.h"
#include "storage/shard_index.h"

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
  if (stream.source.format != ItemFormat::kIndex) return FindCatalog(stream);
  const auto address = ParseSourceAddress(stream.source.uri);
  absl::StatusOr<std::string> text = std::string();
  if (!address.ok()) {
    text = address.status();
  } else if (ranks->rank() == 0) {
    text = FetchIndex(*address, stream.source);
  }
  text = ShareText(std::move(text), stream.timeout + stream.retry.request_timeout, ranks);
  if (!text.ok()) return text.status();
  auto index = ParseShardIndex(*text);
  if (!index.ok()) return index.status();
  return std::move(index->catalog);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Contents>> LoadContents(const StreamBenchOptions& options,
                                                       Ranks* ranks) {
  auto catalog = LoadCatalog(StreamOptionsOf(options, ranks->rank(), ranks->size()), ranks);
  if (!catalog.ok()) return catalog.status();
  return Contents::Make(options, *std::move(catalog));
}

}  // namespace sluice::bench
