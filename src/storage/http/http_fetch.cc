// libcurl's easy interface, blocking.
#include "storage/http/http_fetch.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "storage/http/http_easy.h"
#include "storage/http/http_response.h"
#include "storage/http/http_url.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

struct Fetch {
  absl::string_view text;  // for messages
  int64_t bytes_max = 0;
  HttpResponse response;
  int64_t head_bytes = 0;
  bool judged = false;
  absl::Status status;
  std::string body;
  bool keeps_errors = false;
};

absl::Status TooLarge(const Fetch& fetch) {
  return absl::ResourceExhaustedError(
      absl::StrCat(fetch.text, ": larger than ", fetch.bytes_max, " bytes"));
}

size_t OnHeader(char* data, size_t size, size_t count, void* self) {
  auto& fetch = *static_cast<Fetch*>(self);
  const size_t bytes = size * count;
  fetch.head_bytes += static_cast<int64_t>(bytes);
  if (fetch.head_bytes > kHttpHeadBytesMax) {
    fetch.status = HttpHeadTooLong(fetch.text);
    return 0;
  }
  if (fetch.judged || !fetch.response.AddLine({data, bytes})) return bytes;
  fetch.judged = true;
  fetch.status = CheckWholeResponse(fetch.response, fetch.text);
  if (fetch.status.ok() && fetch.response.content_length > fetch.bytes_max) {
    fetch.status = TooLarge(fetch);
  }
  // The body is where a store says more of an error.
  return fetch.status.ok() || fetch.keeps_errors ? bytes : 0;
}

size_t OnBody(char* data, size_t size, size_t count, void* self) {
  auto& fetch = *static_cast<Fetch*>(self);
  const size_t bytes = size * count;
  if (!fetch.status.ok()) {
    fetch.body.append(data, std::min(bytes, kExplainedBytes - fetch.body.size()));
    return fetch.body.size() < kExplainedBytes ? bytes : bytes + 1;
  }
  if (static_cast<int64_t>(fetch.body.size() + bytes) > fetch.bytes_max) {
    fetch.status = TooLarge(fetch);
    return bytes + 1;
  }
  fetch.body.append(data, bytes);
  return bytes;
}

// libcurl asks about once a second.
int OnProgress(void* stop, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(stop)->load(std::memory_order_relaxed) ? 1 : 0;
}

// At most a day: libcurl takes no more milliseconds than fit an int.
long Milliseconds(int64_t time_ns) {
  constexpr int64_t kMost = 86'400'000;
  return static_cast<long>(std::clamp<int64_t>(time_ns / 1'000'000, 1, kMost));
}

}  // namespace

absl::StatusOr<std::string> FetchHttpObject(const HttpFetch& what, int64_t bytes_max,
                                            const HttpOptions& options,
                                            const std::atomic<bool>* stop) {
  SLUICE_RETURN_IF_ERROR(CheckHttpUrl(what.url));
  SLUICE_RETURN_IF_ERROR(CheckHttpOptions(options));
  const std::string& text = what.shown.empty() ? what.url : what.shown;
  HttpSigner* const signer = options.signer.get();
  HttpEasy easy;
  SLUICE_RETURN_IF_ERROR(easy.Init(options));
  Fetch fetch;
  fetch.text = text;
  fetch.bytes_max = bytes_max;
  fetch.keeps_errors = signer != nullptr;
  const std::string url = absl::StrCat(what.url, what.query.empty() ? "" : "?", what.query);
  curl_easy_setopt(easy.get(), CURLOPT_URL, url.c_str());  // copied
  if (signer != nullptr) SLUICE_RETURN_IF_ERROR(Annotate(easy.Sign(signer, ""), text));
  curl_easy_setopt(easy.get(), CURLOPT_HEADERFUNCTION, &OnHeader);
  curl_easy_setopt(easy.get(), CURLOPT_HEADERDATA, &fetch);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &fetch);
  if (options.timeout_ns != INT64_MAX) {
    curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT_MS, Milliseconds(options.timeout_ns));
  }
  curl_easy_setopt(easy.get(), CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(options.stall_timeout_ns));
  // In whole seconds only.
  curl_easy_setopt(easy.get(), CURLOPT_LOW_SPEED_LIMIT, kHttpLeastBytesPerSecond);
  curl_easy_setopt(easy.get(), CURLOPT_LOW_SPEED_TIME,
                   (Milliseconds(options.stall_timeout_ns) + 999) / 1000);
  if (stop != nullptr) {
    curl_easy_setopt(easy.get(), CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy.get(), CURLOPT_XFERINFOFUNCTION, &OnProgress);
    curl_easy_setopt(easy.get(), CURLOPT_XFERINFODATA, const_cast<std::atomic<bool>*>(stop));
  }
  const CURLcode code = curl_easy_perform(easy.get());
  if (!fetch.status.ok()) {
    return signer == nullptr
               ? fetch.status
               : signer->Explain(fetch.response, fetch.body, easy.keys_number(), fetch.status);
  }
  if (code == CURLE_ABORTED_BY_CALLBACK) {
    return absl::CancelledError(absl::StrCat(text, ": given up"));
  }
  if (code != CURLE_OK) return easy.AnswerStatus(code, fetch.judged, text);
  if (!fetch.judged) return absl::UnavailableError(absl::StrCat(text, ": no answer of HTTP"));
  return std::move(fetch.body);
}

}  // namespace sluice
