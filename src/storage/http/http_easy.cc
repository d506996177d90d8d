// Settings of easy handles, and libcurl's codes as statuses.
#include "storage/http/http_easy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"

#ifndef SLUICE_VERSION
#define SLUICE_VERSION "0"
#endif

namespace sluice {
namespace {

// Larger reads need fewer calls, but each connection has such a buffer; see docs of
// CURLOPT_BUFFERSIZE.
constexpr long kBufferBytes = 64 << 10;

// Once per process and never undone: other users of libcurl in the process may live longer.
CURLcode InitLibcurl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  return code;
}

constexpr char kPlain[] = "Accept-Encoding: identity";

absl::StatusCode CodeOf(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:  // a reset within the handshake is one, too
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_AGAIN:
      return absl::StatusCode::kUnavailable;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return absl::StatusCode::kFailedPrecondition;
    case CURLE_OUT_OF_MEMORY:
      return absl::StatusCode::kResourceExhausted;
    case CURLE_URL_MALFORMAT:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kUnknown;
  }
}

}  // namespace

absl::Status CheckHttpOptions(const HttpOptions& options) {
  if (options.connections_per_host < 1 || options.connections_max < 1) {
    return absl::InvalidArgumentError("HTTP needs at least one connection");
  }
  if (options.timeout_ns < 1 || options.stall_timeout_ns < 1) {
    return absl::InvalidArgumentError("HTTP needs timeouts above zero");
  }
  return absl::OkStatus();
}

curl_slist* HttpEasy::PlainHeaders() {
  static curl_slist* const headers = curl_slist_append(nullptr, kPlain);
  return headers;
}

curl_slist* HttpEasy::HeadersWith(const std::string& header) {
  curl_slist* const plain = curl_slist_append(nullptr, kPlain);
  curl_slist* const both = plain == nullptr ? nullptr : curl_slist_append(plain, header.c_str());
  if (both == nullptr) curl_slist_free_all(plain);
  return both;
}

absl::Status HttpEasy::Sign(HttpSigner* signer, const std::string& header) {
  SLUICE_ASSIGN_OR_RETURN(HttpKeys keys, signer->Keys());
  if (!header.empty()) keys.headers.push_back(header);
  std::unique_ptr<curl_slist, FreeHttpHeaders> headers;
  for (const std::string& line : keys.headers) {
    curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
    if (longer == nullptr) return absl::ResourceExhaustedError("no memory for headers");
    static_cast<void>(headers.release());
    headers.reset(longer);
  }
  CURLcode code = curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers.get());
  signed_headers_ = std::move(headers);
  keys_number_ = keys.number;
  // A libcurl that cannot sign would send the password as it is: it is told of the scheme first.
  const auto set = [&](CURLoption option, const std::string& value) {
    if (code != CURLE_OK) return;
    code = curl_easy_setopt(easy_, option, value.empty() ? nullptr : value.c_str());
  };
  set(CURLOPT_AWS_SIGV4, keys.scheme);
  set(CURLOPT_USERNAME, keys.user);
  set(CURLOPT_PASSWORD, keys.password);
  return code == CURLE_OK ? absl::OkStatus() : ErrorStatus(code, "libcurl's signing of requests");
}

HttpEasy::~HttpEasy() { curl_easy_cleanup(easy_); }

absl::Status HttpEasy::Init(const HttpOptions& options) {
  if (const CURLcode code = InitLibcurl(); code != CURLE_OK) {
    return absl::FailedPreconditionError(
        absl::StrCat("libcurl cannot be used: ", curl_easy_strerror(code)));
  }
  easy_ = curl_easy_init();
  if (easy_ == nullptr) return absl::ResourceExhaustedError("no memory for a libcurl handle");
  CURLcode worst = CURLE_OK;
  const auto set = [&](CURLoption option, auto value) {
    const CURLcode code = curl_easy_setopt(easy_, option, value);
    if (code != CURLE_OK) worst = code;
  };
  set(CURLOPT_ERRORBUFFER, error_.data());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "sluice/" SLUICE_VERSION);
  set(CURLOPT_HTTPHEADER, PlainHeaders());
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!options.ca_file.empty()) set(CURLOPT_CAINFO, options.ca_file.c_str());
  set(CURLOPT_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  if (worst != CURLE_OK) return ErrorStatus(worst, "libcurl's settings");
  return absl::OkStatus();
}

absl::Status HttpEasy::AnswerStatus(CURLcode code, bool has_head, absl::string_view what) const {
  constexpr int kTooLarge = 100;  // CURLE_TOO_LARGE, which older versions do not know
  if (has_head || (code != CURLE_OUT_OF_MEMORY && static_cast<int>(code) != kTooLarge)) {
    return ErrorStatus(code, what);
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      what, ": the answer's head has a line longer than the 100 KiB that libcurl takes, ",
      "or no memory is left"));
}

absl::Status HttpEasy::ErrorStatus(CURLcode code, absl::string_view what) const {
  const char* const text = error_[0] != '\0' ? error_.data() : curl_easy_strerror(code);
  return absl::Status(CodeOf(code), absl::StrCat(what, ": ", text));
}

}  // namespace sluice
