// Errors of a store, out of the XML that it answers with.
#ifndef SLUICE_SRC_STORAGE_S3_S3_ERROR_H_
#define SLUICE_SRC_STORAGE_S3_S3_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/http/http_response.h"

namespace sluice {

// The body's <Code>; empty if it has none, or one that is no word.
std::string S3ErrorCode(absl::string_view body);

// Whether the code says that temporary keys have ended.
bool IsS3Expiry(absl::string_view code);

// The answer to a request, which `status` is of.
struct S3Answer {
  const HttpResponse& response;
  absl::string_view body;
  absl::string_view region;            // that the request was signed for
  absl::string_view unsigned_because;  // empty: the request was signed
};

// `status` with the store's <Code>, and what to do about it. Codes that pass are Unavailable. An
// answer that is no error stays as it is. Nothing else of the body is repeated: stores put the
// signature there.
absl::Status ExplainS3Error(const S3Answer& answer, const absl::Status& status);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_S3_S3_ERROR_H_
