// Takes in the bytes of one request, and decides what becomes of them.
#include "storage/http/http_transfer.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "storage/source_check.h"
#include "storage/wake_set.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// The body of an error is read to its end, to keep the connection, unless it is longer.
constexpr int64_t kErrorBytesMax = 64 << 10;
constexpr size_t kEtagBytesMax = 1024;
// A day, which libcurl takes as a number of milliseconds.
constexpr int64_t kConnectMsMax = 86'400'000;

}  // namespace

// A weak ETag is good for comparing, not for asking: If-Match never holds with one.
void HttpObject::AskForVersion() {
  const std::string& etag = version->etag;
  if (!absl::StartsWith(etag, "\"") || etag.size() > kEtagBytesMax) return;
  if_match = absl::StrCat("If-Match: ", etag);
  headers.reset(HttpEasy::HeadersWith(if_match));
}

absl::Status HttpTransfer::Init(const HttpOptions& options) {
  SLUICE_RETURN_IF_ERROR(easy_.Init(options));
  signer_ = options.signer;
  curl_easy_setopt(easy(), CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy(), CURLOPT_HEADERFUNCTION, &HttpTransfer::OnHeader);
  curl_easy_setopt(easy(), CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy(), CURLOPT_WRITEFUNCTION, &HttpTransfer::OnBody);
  curl_easy_setopt(easy(), CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy(), CURLOPT_SOCKOPTFUNCTION, &HttpTransfer::OnConnect);
  curl_easy_setopt(easy(), CURLOPT_SOCKOPTDATA, this);
  // The owner knows better when a request is late; libcurl's own limit would end a slow connect.
  curl_easy_setopt(
      easy(), CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(std::min(options.timeout_ns / 1'000'000, kConnectMsMax) + 1000));
  return absl::OkStatus();
}

absl::Status HttpTransfer::Begin(const ReadOp& op, HttpObject* object) {
  op_ = op;
  object_ = object;
  response_.Clear();
  judged_ = false;
  status_ = absl::OkStatus();
  error_body_.clear();
  filled_ = head_bytes_ = bytes_received_ = connects_ = 0;
  begun_ns_ = moved_ns_ = MonotonicNs();
  op_.TellBegun(begun_ns_);
  char range[48];
  std::snprintf(range, sizeof(range), "%" PRId64 "-%" PRId64, op.offset, op.offset + op.bytes - 1);
  CURLcode code = curl_easy_setopt(easy(), CURLOPT_URL, object->url.c_str());
  if (code == CURLE_OK) code = curl_easy_setopt(easy(), CURLOPT_RANGE, range);
  if (signer_ != nullptr && code == CURLE_OK) {
    return Annotate(easy_.Sign(signer_.get(), object->if_match), Text());
  }
  curl_slist* const headers = object->headers ? object->headers.get() : HttpEasy::PlainHeaders();
  if (code == CURLE_OK) code = curl_easy_setopt(easy(), CURLOPT_HTTPHEADER, headers);
  return code == CURLE_OK ? absl::OkStatus() : easy_.ErrorStatus(code, Text());
}

absl::Status HttpTransfer::Outcome(CURLcode code) const {
  if (!status_.ok()) {
    return signer_ == nullptr
               ? status_
               : signer_->Explain(response_, error_body_, easy_.keys_number(), status_);
  }
  if (code != CURLE_OK) return easy_.AnswerStatus(code, judged_, Text());
  if (!judged_) return absl::UnavailableError(absl::StrCat(Text(), ": no answer of HTTP"));
  if (filled_ < op_.bytes) {
    return absl::UnavailableError(
        absl::StrCat(Text(), ": the answer ends early, after ", filled_, " bytes"));
  }
  return absl::OkStatus();
}

std::string HttpTransfer::Text() const { return RangeText(object_->name, op_.offset, op_.bytes); }

size_t HttpTransfer::OnHeader(char* data, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  const size_t bytes = size * count;
  transfer.Moved(bytes);
  transfer.head_bytes_ += static_cast<int64_t>(bytes);
  if (transfer.head_bytes_ > kHttpHeadBytesMax) {
    transfer.status_ = HttpHeadTooLong(transfer.Text());
    return 0;
  }
  // Lines after the judgement are a chunked body's trailer.
  if (!transfer.judged_ && transfer.response_.AddLine({data, bytes}) && !transfer.TakeHead()) {
    return 0;
  }
  return bytes;
}

size_t HttpTransfer::OnBody(char* data, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  const size_t bytes = size * count;
  transfer.Moved(bytes);
  // 0 would mean that nothing was wrong with nothing.
  return transfer.TakeBody(data, bytes) ? bytes : bytes + 1;
}

int HttpTransfer::OnConnect(void* self, curl_socket_t /*fd*/, curlsocktype /*purpose*/) {
  ++static_cast<HttpTransfer*>(self)->connects_;
  return CURL_SOCKOPT_OK;
}

void HttpTransfer::Moved(size_t bytes) {
  constexpr int64_t kMostNsPerByte = 1'000'000'000 / kHttpLeastBytesPerSecond;
  moved_ns_ = std::min(MonotonicNs(), moved_ns_ + static_cast<int64_t>(bytes) * kMostNsPerByte);
  op_.TellMoved(moved_ns_);
}

void HttpTransfer::TakeVersion() {
  if (object_->version->is_known()) return;
  *object_->version = response_.version;
  object_->AskForVersion();
}

// False: not worth reading on.
bool HttpTransfer::TakeHead() {
  judged_ = true;
  status_ = CheckRangeResponse(
      response_, {object_->name, op_.offset, op_.bytes, object_->bytes, object_->version});
  if (status_.ok()) {
    const bool whole = response_.code == 200;
    const int64_t total = whole ? response_.content_length : response_.object_bytes;
    TakeVersion();
    if (total >= 0) object_->bytes = object_->version->bytes = total;
    return true;
  }
  if (response_.content_length < 0) return response_.code / 100 != 2;
  return response_.content_length <= kErrorBytesMax;
}

bool HttpTransfer::TakeBody(const char* data, size_t bytes) {
  const auto count = static_cast<int64_t>(bytes);
  bytes_received_ += count;
  if (!status_.ok()) {
    if (signer_ != nullptr) {
      error_body_.append(data, std::min(bytes, kExplainedBytes - error_body_.size()));
    }
    return bytes_received_ <= kErrorBytesMax;
  }
  if (!judged_ || count > op_.bytes - filled_) {
    status_ = absl::DataLossError(absl::StrCat(Text(), ": the answer is longer than its range"));
    return false;
  }
  std::memcpy(op_.data + filled_, data, bytes);
  filled_ += count;
  return true;
}

}  // namespace sluice
