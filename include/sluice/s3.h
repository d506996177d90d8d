// Stores that speak S3, as sources "s3://BUCKET/PREFIX": where a store is, and who asks.
#ifndef SLUICE_S3_H_
#define SLUICE_S3_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace sluice {

// Keys that requests are signed with. Both empty: requests are not signed.
struct S3Credentials {
  std::string access_key = {};
  std::string secret_key = {};
  std::string session_token = {};  // of temporary keys
  absl::Time expires = absl::InfiniteFuture();
};

// Returns the keys of now. Each reader of a call asks before its first request, shortly before the
// keys' end, and when the store says that they have ended. Runs on threads of the session, one call
// of a reader at a time, and nothing else of the rank moves meanwhile. It must not use the session.
using S3CredentialsFunction = std::function<absl::StatusOr<S3Credentials>()>;

// Fields that are not given are looked for in the environment, and then in the profile $AWS_PROFILE
// ("default") of ~/.aws/credentials and ~/.aws/config, or of the files that
// $AWS_SHARED_CREDENTIALS_FILE and $AWS_CONFIG_FILE name. No message, trace or report has a key.
struct S3Options {
  // "https://HOST" of a store whose objects are at HOST/BUCKET/KEY. Otherwise $AWS_ENDPOINT_URL_S3,
  // $AWS_ENDPOINT_URL, the profile's endpoint_url, or AWS.
  std::string endpoint = {};
  // Otherwise $AWS_REGION, $AWS_DEFAULT_REGION, the profile's region, or "us-east-1".
  std::string region = {};
  // Otherwise $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and $AWS_SESSION_TOKEN, or the profile's
  // keys. Without any, requests are not signed.
  S3CredentialsFunction credentials = nullptr;
};

}  // namespace sluice

#endif  // SLUICE_S3_H_
