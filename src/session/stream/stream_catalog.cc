// Indices are fetched, directories listed.
#include "session/stream/stream_catalog.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "session/shard/read_text.h"
#include "session/stream/list_objects.h"
#include "session/stream/stream_source.h"
#include "storage/format/shard_index.h"
#include "storage/open/whole_object.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

absl::StatusOr<std::string> FetchIndex(const SourceAddress& address, const StreamSource& source,
                                       const RetryOptions& retry, const WorkStop& stop) {
  if (!source.index.empty()) return source.index;
  absl::StatusOr<WholeObject> index = FetchText(
      address, kShardIndexName, ShardIndexLimits().text_bytes, OpenOptionsOf(source), retry, stop);
  if (index.ok()) return std::move(index->text);
  if (address.is_http() || !absl::IsNotFound(index.status())) return index.status();
  return absl::NotFoundError(absl::StrCat("there is no ",
                                          QuotedPath(ObjectPath(address, kShardIndexName)),
                                          ": `sluice-bench shards` writes one, or say what format ",
                                          "the files of the directory have"));
}

}  // namespace

absl::StatusOr<std::string> FetchCatalogText(const SourceAddress& address,
                                             const StreamSource& source, const RetryOptions& retry,
                                             const WorkStop* stop) {
  const WorkStop never = false;
  if (stop == nullptr) stop = &never;
  if (source.format == ItemFormat::kIndex) return FetchIndex(address, source, retry, *stop);
  if (!address.is_http() || address.is_s3()) return ListObjects(address, source, retry, *stop);
  return absl::InvalidArgumentError("an HTTP source needs an index.json: it cannot be listed");
}

absl::StatusOr<Catalog> ReadCatalogText(absl::string_view text, const StreamSource& source) {
  if (source.format != ItemFormat::kIndex) return ReadListing(text, source);
  absl::StatusOr<ShardIndex> index = ParseShardIndex(text);
  if (!index.ok()) return index.status();
  return std::move(index->catalog);
}

}  // namespace sluice
