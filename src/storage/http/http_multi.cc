// libcurl's socket actions (see CURLMOPT_SOCKETFUNCTION and CURLMOPT_TIMERFUNCTION).
#include "storage/http/http_multi.h"

#include <sys/epoll.h>

#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace sluice {

HttpMulti::~HttpMulti() {
  if (multi_ != nullptr) curl_multi_cleanup(multi_);  // calls OnSocket
}

absl::Status HttpMulti::Init(int connections) {
  multi_ = curl_multi_init();
  if (multi_ == nullptr) return absl::ResourceExhaustedError("no memory for a libcurl handle");
  const auto connections_max = static_cast<long>(connections);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &HttpMulti::OnSocket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &HttpMulti::OnTimer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, connections_max);
  curl_multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections_max);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, connections_max);  // those that are kept
  return absl::OkStatus();
}

void HttpMulti::Add(CURL* easy) { Check(curl_multi_add_handle(multi_, easy)); }

void HttpMulti::Remove(CURL* easy) { Check(curl_multi_remove_handle(multi_, easy)); }

void HttpMulti::RunSockets() {
  std::array<epoll_event, 64> ready;
  const int count = wake_->Ready(absl::MakeSpan(ready));
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<size_t>(i)];
    int mask = 0;
    if ((event.events & EPOLLIN) != 0) mask |= CURL_CSELECT_IN;
    if ((event.events & EPOLLOUT) != 0) mask |= CURL_CSELECT_OUT;
    if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) mask |= CURL_CSELECT_ERR;
    int running = 0;
    Check(curl_multi_socket_action(multi_, event.data.fd, mask, &running));
  }
}

void HttpMulti::RunTimer() {
  if (timer_ns_ == WakeSet::kNever || MonotonicNs() < timer_ns_) return;
  timer_ns_ = WakeSet::kNever;  // it fires once
  int running = 0;
  Check(curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running));
}

CURL* HttpMulti::NextDone(CURLcode* code) {
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    *code = message->data.result;
    return message->easy_handle;
  }
  return nullptr;
}

int HttpMulti::OnSocket(CURL* /*easy*/, curl_socket_t fd, int what, void* self, void*) {
  auto& multi = *static_cast<HttpMulti*>(self);
  uint32_t events = 0;
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) events |= EPOLLIN;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) events |= EPOLLOUT;
  if (what == CURL_POLL_REMOVE || events == 0) {
    multi.wake_->Forget(fd);
    return 0;
  }
  multi.status_.Update(multi.wake_->Watch(fd, events));
  return 0;
}

int HttpMulti::OnTimer(CURLM* /*multi*/, long timeout_ms, void* self) {
  static_cast<HttpMulti*>(self)->timer_ns_ =
      timeout_ms < 0 ? WakeSet::kNever : MonotonicNs() + int64_t{timeout_ms} * 1'000'000;
  return 0;
}

void HttpMulti::Check(CURLMcode code) {
  // BAD_SOCKET: closed since it was reported.
  if (code == CURLM_OK || code == CURLM_BAD_SOCKET) return;
  status_.Update(absl::InternalError(absl::StrCat("libcurl: ", curl_multi_strerror(code))));
}

}  // namespace sluice
