// Indices are fetched, directories listed.
#include "session/stream_catalog.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "session/list_objects.h"
#include "storage/http_fetch.h"
#include "storage/shard_index.h"
#include "storage/whole_file.h"

namespace sluice {
namespace {

absl::StatusOr<std::string> FetchIndex(const SourceAddress& address, const StreamSource& source,
                                       const RetryOptions& retry, const std::atomic<bool>* stop) {
  const int64_t bytes_max = ShardIndexLimits().text_bytes;
  if (address.is_http()) {
    HttpOptions http = HttpOptionsOf(source);
    // As for pieces: an index that still comes is not late.
    http.timeout_ns = INT64_MAX;
    http.stall_timeout_ns = absl::ToInt64Nanoseconds(retry.request_timeout);
    return FetchHttpObject(absl::StrCat(address.place, kShardIndexName), bytes_max, http, stop);
  }
  const std::string path = absl::StrCat(address.place, "/", kShardIndexName);
  absl::StatusOr<WholeFile> file = ReadWholeFile(path, bytes_max);
  if (file.ok()) return std::move(file->text);
  if (!absl::IsNotFound(file.status())) return file.status();
  return absl::NotFoundError(absl::StrCat("there is no ", path,
                                          ": `sluice-bench shards` writes one, or say what format ",
                                          "the files of the directory have"));
}

// False if there is nothing to wait for any more.
bool Sleep(absl::Duration pause, const std::atomic<bool>* stop) {
  constexpr absl::Duration kLook = absl::Milliseconds(20);
  const auto stopped = [stop] { return stop != nullptr && stop->load(std::memory_order_relaxed); };
  for (; pause > absl::ZeroDuration() && !stopped(); pause -= kLook) {
    absl::SleepFor(std::min(pause, kLook));
  }
  return !stopped();
}

}  // namespace

absl::StatusOr<std::string> FetchCatalogText(const SourceAddress& address,
                                             const StreamSource& source, const RetryOptions& retry,
                                             const std::atomic<bool>* stop) {
  if (source.format != ItemFormat::kIndex) {
    if (!address.is_http()) return ListObjects(address, source);
    return absl::InvalidArgumentError("an HTTP source needs an index.json: it cannot be listed");
  }
  absl::StatusOr<std::string> index = FetchIndex(address, source, retry, stop);
  absl::Duration pause = retry.backoff;
  for (int i = 1; i < retry.attempts_max && absl::IsUnavailable(index.status()); ++i) {
    if (!Sleep(std::exchange(pause, 2 * pause), stop)) break;
    index = FetchIndex(address, source, retry, stop);
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
