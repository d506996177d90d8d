// The seam to stores that want requests signed, and whose errors say more than a number.
#ifndef SLUICE_SRC_STORAGE_HTTP_HTTP_SIGNER_H_
#define SLUICE_SRC_STORAGE_HTTP_HTTP_SIGNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/http/http_response.h"

namespace sluice {

// Keys that one request is signed with. None of it may be in a message.
struct HttpKeys {
  std::string scheme;  // libcurl's CURLOPT_AWS_SIGV4; empty: not signed
  std::string user;
  std::string password;
  std::vector<std::string> headers;  // whole lines
  int64_t number = 0;                // tells these keys from later ones
};

// Thread: any.
class HttpSigner {
 public:
  virtual ~HttpSigner() = default;

  // The keys of now. May wait for whoever has them.
  virtual absl::StatusOr<HttpKeys> Keys() = 0;

  // The status of a request that got an error: `status`, which its code alone led to, or a better
  // one. `body` is the beginning of the answer's; `number` is that of its keys.
  virtual absl::Status Explain(const HttpResponse& response, absl::string_view body, int64_t number,
                               const absl::Status& status) = 0;
};

// As much of an error's body is kept for Explain.
inline constexpr size_t kExplainedBytes = 4096;

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_HTTP_HTTP_SIGNER_H_
