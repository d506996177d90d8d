// libcurl's easy handles as we want them: verified, bounded, following nothing; and its errors.
#ifndef SLUICE_SRC_STORAGE_HTTP_HTTP_EASY_H_
#define SLUICE_SRC_STORAGE_HTTP_HTTP_EASY_H_

#include <curl/curl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/http/http_options.h"
#include "storage/http/http_signer.h"

namespace sluice {

// InvalidArgument for limits below 1.
absl::Status CheckHttpOptions(const HttpOptions& options);

struct FreeHttpHeaders {
  void operator()(curl_slist* headers) const { curl_slist_free_all(headers); }
};

// One easy handle and the text of its last error. Not movable: libcurl writes into it.
class HttpEasy {
 public:
  HttpEasy() = default;
  ~HttpEasy();
  HttpEasy(const HttpEasy&) = delete;
  HttpEasy& operator=(const HttpEasy&) = delete;

  // Makes the handle. All its requests are sent as HTTP/1.1 with our User-Agent, with no signals
  // and no redirections. A server's certificate is verified (TLS 1.2 or later). Bodies are given
  // out as they are, never decoded.
  absl::Status Init(const HttpOptions& options);

  CURL* get() const { return easy_; }

  // The headers of any request: a server would be free to compress without them. Never freed.
  static curl_slist* PlainHeaders();
  // The same and one more, for curl_slist_free_all; null if there is no memory.
  static curl_slist* HeadersWith(const std::string& header);

  // Has the next request signed with the keys of now. Its headers are those of the keys, and
  // `header` unless that is empty. There is no Accept-Encoding: headers are signed, and proxies
  // change that one. An error is that of the keys, or of libcurl.
  absl::Status Sign(HttpSigner* signer, const std::string& header);
  // The number of these keys.
  int64_t keys_number() const { return keys_number_; }

  // The status of a request that libcurl ended with `code`; `what` was asked for.
  absl::Status ErrorStatus(CURLcode code, absl::string_view what) const;
  // The same, with a clearer text where libcurl has given up the head of the answer. `has_head`:
  // the head had come whole.
  absl::Status AnswerStatus(CURLcode code, bool has_head, absl::string_view what) const;

 private:
  CURL* easy_ = nullptr;
  std::unique_ptr<curl_slist, FreeHttpHeaders> signed_headers_;
  int64_t keys_number_ = 0;
  std::array<char, CURL_ERROR_SIZE> error_{};
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_HTTP_HTTP_EASY_H_
