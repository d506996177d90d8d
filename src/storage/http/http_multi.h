// Many libcurl handles at work at once, without waiting: the sockets and the timer that libcurl
// wants watched are put into a WakeSet.
#ifndef SLUICE_SRC_STORAGE_HTTP_HTTP_MULTI_H_
#define SLUICE_SRC_STORAGE_HTTP_HTTP_MULTI_H_

#include <curl/curl.h>

#include <cstdint>

#include "absl/status/status.h"
#include "storage/wake_set.h"

namespace sluice {

// Callbacks of the easy handles run within Run and Remove. Thread: one.
class HttpMulti {
 public:
  explicit HttpMulti(WakeSet* wake) : wake_(wake) {}
  // Closes all connections, without farewell. No handle may be in it.
  ~HttpMulti();
  HttpMulti(const HttpMulti&) = delete;
  HttpMulti& operator=(const HttpMulti&) = delete;

  // At most `connections` connections, at work and kept, of which each carries one request at a
  // time.
  absl::Status Init(int connections);

  // A handle begins at the next RunTimer.
  void Add(CURL* easy);
  // The handle may be at work: its connection is closed then. Nothing if it is not in here.
  void Remove(CURL* easy);

  // Carry on with the sockets that are ready, and with what libcurl wanted done by now.
  void RunSockets();
  void RunTimer();

  // A handle that is at its end, and how it ended; nullptr: none. To be removed by the caller.
  CURL* NextDone(CURLcode* code);

  // RunTimer has nothing to do before (MonotonicNs).
  int64_t timer_ns() const { return timer_ns_; }
  // Not OK: libcurl has failed as a whole.
  const absl::Status& status() const { return status_; }

 private:
  // libcurl's callbacks.
  static int OnSocket(CURL* easy, curl_socket_t fd, int what, void* self, void* socket_data);
  static int OnTimer(CURLM* multi, long timeout_ms, void* self);
  void Check(CURLMcode code);

  WakeSet* const wake_;
  CURLM* multi_ = nullptr;
  int64_t timer_ns_ = WakeSet::kNever;
  absl::Status status_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_HTTP_HTTP_MULTI_H_
