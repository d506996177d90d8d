// Addresses of S3, and the URLs that stand for them.
#ifndef SLUICE_SRC_STORAGE_S3_S3_ADDRESS_H_
#define SLUICE_SRC_STORAGE_S3_S3_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

struct S3Address {
  std::string bucket;
  std::string prefix;  // plain, not encoded; empty, or with a '/' at its end
};

// Parses "s3://BUCKET/PREFIX", with or without a slash at the end. InvalidArgument for anything
// else, for a name that no bucket has, and for a prefix with control characters, "." or "..".
absl::StatusOr<S3Address> ParseS3Address(absl::string_view uri);

// The URL of the bucket, with a '/' at its end. An empty endpoint is AWS.
std::string S3BucketUrl(const S3Address& address, absl::string_view endpoint,
                        absl::string_view region);

// The same of what has the prefix.
std::string S3BaseUrl(const S3Address& address, absl::string_view endpoint,
                      absl::string_view region);

// The query of a page of a listing: objects and folders right below the prefix. `token` is empty
// for the first page.
std::string S3ListQuery(const S3Address& address, absl::string_view token);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_S3_S3_ADDRESS_H_
