// Indices are fetched, directories listed.
#include "session/stream_catalog.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "session/list_objects.h"
#include "storage/http_fetch.h"
#include "storage/shard_index.h"

namespace sluice {
namespace {

absl::StatusOr<std::string> FetchIndex(const SourceAddress& address, const StreamSource& source) {
  if (address.is_http()) {
    return FetchHttpObject(absl::StrCat(address.place, kShardIndexName),
                           ShardIndexLimits().text_bytes, HttpOptionsOf(source));
  }
  const std::string path = absl::StrCat(address.place, "/", kShardIndexName);
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("there is no ", path,
                     ": `sluice-bench shards` writes one, or say what format the files of ",
                     "the directory have"));
  }
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return absl::UnavailableError(absl::StrCat("cannot read ", path));
  return text;
}

}  // namespace

absl::StatusOr<std::string> FetchCatalogText(const SourceAddress& address,
                                             const StreamSource& source,
                                             const RetryOptions& retry) {
  if (source.format != ItemFormat::kIndex) {
    if (!address.is_http()) return ListObjects(address, source);
    return absl::InvalidArgumentError("an HTTP source needs an index.json: it cannot be listed");
  }
  absl::StatusOr<std::string> index = FetchIndex(address, source);
  absl::Duration pause = retry.backoff;
  for (int i = 1; i < retry.attempts_max && absl::IsUnavailable(index.status()); ++i) {
    absl::SleepFor(std::exchange(pause, 2 * pause));
    index = FetchIndex(address, source);
  }
  return index;
}

absl::StatusOr<Catalog> ReadCatalogText(absl::string_view text, const StreamSource& source) {
  if (source.format != ItemFormat::kIndex) return ReadListing(text, source);
  absl::StatusOr<ShardIndex> index = ParseShardIndex(text);
  if (!index.ok()) return index.status();
  return std::move(index->catalog);
}

}  // namespace sluice
