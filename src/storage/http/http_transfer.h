// One range request over one easy handle, which is used again and again.
#ifndef SLUICE_SRC_STORAGE_HTTP_HTTP_TRANSFER_H_
#define SLUICE_SRC_STORAGE_HTTP_HTTP_TRANSFER_H_

#include <curl/curl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "storage/http/http_easy.h"
#include "storage/http/http_options.h"
#include "storage/http/http_response.h"
#include "storage/source.h"

namespace sluice {

struct HttpObject {
  std::string name;
  std::string url;
  int64_t bytes = -1;      // as given, or as the first answer said; -1: unknown
  bool requested = false;  // ever
  // As given, or as the first answer said: all later answers have to be of this version. Must
  // outlive the object.
  HttpVersion* version = nullptr;
  // "If-Match: ..." once later requests ask for the version; and it with those of any request.
  std::string if_match = {};
  std::unique_ptr<curl_slist, FreeHttpHeaders> headers = nullptr;

  // Has later requests ask for the version, once it is known and good for asking.
  void AskForVersion();
};

// Checks the answer as it comes in and writes its body to the op's memory, never beyond. Driving
// the handle is its owner's business. Thread: one.
class HttpTransfer {
 public:
  // To be called once, before all else.
  absl::Status Init(const HttpOptions& options);

  CURL* easy() const { return easy_.get(); }

  // Readies the handle to ask for what `op` wants. `object` must live until the end.
  absl::Status Begin(const ReadOp& op, HttpObject* object);

  // The op's outcome, once libcurl is done with the handle.
  absl::Status Outcome(CURLcode code) const;

  // Between Begin and End.
  bool busy() const { return object_ != nullptr; }
  void End() { object_ = nullptr; }
  // Nobody asks any more how far the op is.
  void Forget() { op_.progress = nullptr; }

  const ReadOp& op() const { return op_; }
  // "bytes 0 to 4095 of shard-0.bin"
  std::string Text() const;
  int64_t begun_ns() const { return begun_ns_; }
  // When its last bytes came. Bytes slower than kHttpLeastBytesPerSecond put this time off by no
  // more than they take at that speed.
  int64_t moved_ns() const { return moved_ns_; }
  // Counts of this request: bytes of bodies, thrown away or not; connections made for it.
  int64_t bytes_received() const { return bytes_received_; }
  int64_t connects() const { return connects_; }

 private:
  // libcurl's callbacks: fewer bytes taken than there are end the request.
  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  static size_t OnBody(char* data, size_t size, size_t count, void* self);
  static int OnConnect(void* self, curl_socket_t fd, curlsocktype purpose);
  void Moved(size_t bytes);
  void TakeVersion();
  bool TakeHead();
  bool TakeBody(const char* data, size_t bytes);

  HttpEasy easy_;
  std::shared_ptr<HttpSigner> signer_;  // or null
  ReadOp op_;
  HttpObject* object_ = nullptr;
  HttpResponse response_;
  bool judged_ = false;     // by its head
  absl::Status status_;     // what is wrong with the answer
  std::string error_body_;  // its beginning, for the signer
  int64_t filled_ = 0;      // bytes of the op's memory
  int64_t head_bytes_ = 0;
  int64_t bytes_received_ = 0;
  int64_t connects_ = 0;
  int64_t begun_ns_ = 0;
  int64_t moved_ns_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_HTTP_HTTP_TRANSFER_H_
