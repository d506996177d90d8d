// The events that a source waits for, behind one file descriptor: other descriptors, a time, and
// events that lie ready.
#ifndef SLUICE_SRC_STORAGE_WAKE_SET_H_
#define SLUICE_SRC_STORAGE_WAKE_SET_H_

#include <sys/epoll.h>

#include <cstdint>
#include <limits>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace sluice {

// An epoll descriptor over a timer, an event counter and whatever else is watched. All of it is
// level-triggered: what was not dealt with is reported again. Thread: one, but fd() may be polled
// by any.
class WakeSet {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // ResourceExhausted if the process has no descriptors left.
  static absl::StatusOr<std::unique_ptr<WakeSet>> Make();
  ~WakeSet();
  WakeSet(const WakeSet&) = delete;
  WakeSet& operator=(const WakeSet&) = delete;

  int fd() const { return epoll_fd_; }

  // Watches a descriptor for EPOLLIN and the like, instead of what it was watched for before.
  absl::Status Watch(int fd, uint32_t events);
  // The descriptor may be closed already.
  void Forget(int fd);

  // fd() is readable from this time on (MonotonicNs); kNever: not by time.
  void WakeAt(int64_t time_ns);
  // fd() is readable until told otherwise.
  void SetReady(bool ready);

  // Gives the watched descriptors that are ready, each as data.fd; returns how many. Does not wait.
  int Ready(absl::Span<epoll_event> events);

 private:
  WakeSet() = default;

  int epoll_fd_ = -1;
  int timer_fd_ = -1;
  int event_fd_ = -1;
  int64_t wake_ns_ = kNever;
  bool ready_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_WAKE_SET_H_
