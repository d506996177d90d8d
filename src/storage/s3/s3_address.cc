// Checks addresses, and joins URLs out of them.
#include "storage/s3/s3_address.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "storage/http/http_url.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

bool IsBucketChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
}

// One label of a host name, which a certificate of "*.s3.REGION.amazonaws.com" covers.
bool IsHostLabel(absl::string_view bucket) {
  return std::none_of(bucket.begin(), bucket.end(), [](char c) {
    return c == '.' || c == '_' || absl::ascii_isupper(static_cast<unsigned char>(c));
  });
}

}  // namespace

absl::StatusOr<S3Address> ParseS3Address(absl::string_view uri) {
  absl::string_view rest = uri;
  if (!absl::ConsumePrefix(&rest, "s3://")) {
    return absl::InvalidArgumentError(absl::StrCat("not an s3:// address: ", ShownUrl(uri)));
  }
  const absl::string_view bucket = rest.substr(0, rest.find('/'));
  if (absl::StrContains(bucket, '@') || absl::StrContains(bucket, ':')) {
    // Not repeated: it may hold a key.
    return absl::InvalidArgumentError(
        "an s3:// address with more than a bucket before its first slash: keys and the endpoint "
        "are given elsewhere");
  }
  constexpr size_t kBucketBytesMax = 255;
  if (bucket.empty() || bucket.size() > kBucketBytesMax ||
      !std::all_of(bucket.begin(), bucket.end(), IsBucketChar) || bucket.front() == '.' ||
      bucket.front() == '-') {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(uri), " names no bucket: s3://BUCKET/PREFIX"));
  }
  rest.remove_prefix(bucket.size());
  absl::ConsumePrefix(&rest, "/");
  absl::ConsumeSuffix(&rest, "/");
  const bool is_plain = std::none_of(rest.begin(), rest.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  for (const absl::string_view part : absl::StrSplit(rest, '/')) {
    if (is_plain && part != "." && part != "..") continue;
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(uri), " has a prefix with control characters, or with a part \".\" or \"..\""));
  }
  return S3Address{std::string(bucket), absl::StrCat(rest, rest.empty() ? "" : "/")};
}

std::string S3BucketUrl(const S3Address& address, absl::string_view endpoint,
                        absl::string_view region) {
  if (!endpoint.empty()) {
    return absl::StrCat(absl::StripSuffix(endpoint, "/"), "/", address.bucket, "/");
  }
  const std::string host = absl::StrCat("s3.", region, ".amazonaws.com",
                                        absl::StartsWith(region, "cn-") ? ".cn" : "", "/");
  return IsHostLabel(address.bucket) ? absl::StrCat("https://", address.bucket, ".", host)
                                     : absl::StrCat("https://", host, address.bucket, "/");
}

std::string S3BaseUrl(const S3Address& address, absl::string_view endpoint,
                      absl::string_view region) {
  return S3BucketUrl(address, endpoint, region) + PercentEncoded(address.prefix);
}

// Parameters are in the order of their names, as a signature wants them.
std::string S3ListQuery(const S3Address& address, absl::string_view token) {
  constexpr bool kKeepsSlash = true;
  std::string query;
  if (!token.empty()) {
    query = absl::StrCat("continuation-token=", PercentEncoded(token, !kKeepsSlash), "&");
  }
  absl::StrAppend(&query, "delimiter=%2F&list-type=2&max-keys=1000");
  if (address.prefix.empty()) return query;
  return absl::StrCat(query, "&prefix=", PercentEncoded(address.prefix, !kKeepsSlash));
}

}  // namespace sluice
