// Addresses, from text.
#include "storage/open/source_address.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "storage/http/http_url.h"
#include "storage/s3/s3_address.h"
#include "tensor/error_text.h"

namespace sluice {

absl::StatusOr<SourceAddress> ParseSourceAddress(absl::string_view uri) {
  if (uri.empty()) return SourceAddress();
  for (const absl::string_view scheme : {"http", "https"}) {
    if (!absl::StartsWith(uri, absl::StrCat(scheme, "://"))) continue;
    SLUICE_RETURN_IF_ERROR(CheckHttpUrl(uri));
    return SourceAddress{std::string(scheme),
                         absl::StrCat(uri, absl::EndsWith(uri, "/") ? "" : "/")};
  }
  if (absl::StartsWith(uri, "s3:")) {
    SLUICE_ASSIGN_OR_RETURN(const S3Address address, ParseS3Address(uri));
    return SourceAddress{"s3", absl::StrCat("s3://", address.bucket, "/", address.prefix)};
  }
  for (const absl::string_view scheme : {"file", "buffered", "mmap"}) {
    absl::string_view place = uri;
    if (!absl::ConsumePrefix(&place, absl::StrCat(scheme, ":"))) continue;
    // "file:///data" is the same as "file:/data".
    if (absl::StartsWith(place, "///")) place.remove_prefix(2);
    if (place.empty()) break;
    return SourceAddress{std::string(scheme), std::string(place)};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      ShownUrl(uri), " is no source: file:DIR, buffered:DIR, mmap:DIR, http://HOST/BASE/, ",
      "https://HOST/BASE/ or s3://BUCKET/PREFIX"));
}

}  // namespace sluice
