// epoll, timerfd and eventfd, put together.
#include "storage/wake_set.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "storage/source_check.h"
#include "tensor/check.h"
#include "tensor/error_text.h"

namespace sluice {

absl::StatusOr<std::unique_ptr<WakeSet>> WakeSet::Make() {
  std::unique_ptr<WakeSet> set(new WakeSet);
  set->epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (set->epoll_fd_ < 0) return ReadErrnoStatus(errno, "epoll_create1");
  set->timer_fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (set->timer_fd_ < 0) return ReadErrnoStatus(errno, "timerfd_create");
  set->event_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (set->event_fd_ < 0) return ReadErrnoStatus(errno, "eventfd");
  for (const int fd : {set->timer_fd_, set->event_fd_}) {
    SLUICE_RETURN_IF_ERROR(set->Watch(fd, EPOLLIN));
  }
  return set;
}

WakeSet::~WakeSet() {
  for (const int fd : {epoll_fd_, timer_fd_, event_fd_}) {
    if (fd >= 0) close(fd);
  }
}

absl::Status WakeSet::Watch(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event) == 0) return absl::OkStatus();
  if (errno == ENOENT && epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0) {
    return absl::OkStatus();
  }
  return ReadErrnoStatus(errno, "epoll_ctl");
}

void WakeSet::Forget(int fd) {
  // Not there: closing it took it out of the set.
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
}

void WakeSet::WakeAt(int64_t time_ns) {
  if (time_ns == wake_ns_) return;
  wake_ns_ = time_ns;
  itimerspec when{};  // all zero: never
  if (time_ns != kNever) {
    const int64_t at_ns = std::max<int64_t>(time_ns, 1);
    when.it_value.tv_sec = at_ns / 1'000'000'000;
    when.it_value.tv_nsec = at_ns % 1'000'000'000;
  }
  // Also takes back that it has fired.
  SLUICE_CHECK(timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &when, nullptr) == 0,
               "a timer could not be set");
}

void WakeSet::SetReady(bool ready) {
  if (ready == ready_) return;
  ready_ = ready;
  uint64_t count = 1;
  const ssize_t done =
      ready ? write(event_fd_, &count, sizeof(count)) : read(event_fd_, &count, sizeof(count));
  SLUICE_CHECK(done == sizeof(count), "an event counter could not be set");
}

int WakeSet::Ready(absl::Span<epoll_event> events) {
  const int count = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), 0);
  if (count <= 0) return 0;  // EINTR: they will be reported again
  const auto is_own = [&](const epoll_event& event) {
    return event.data.fd == timer_fd_ || event.data.fd == event_fd_;
  };
  const auto end = std::remove_if(events.begin(), events.begin() + count, is_own);
  return static_cast<int>(end - events.begin());
}

}  // namespace sluice
