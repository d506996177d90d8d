// Sleeping in ppoll, beside a backoff for what the kernel knows nothing of.
#include "session/base/idle_wait.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tensor/check.h"

namespace sluice {

IdleWait::IdleWait() : wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  polled_.reserve(1);  // a first sleep may come late, and steady runs allocate nothing
}

IdleWait::~IdleWait() {
  if (wake_fd_ >= 0) close(wake_fd_);
}

void IdleWait::Watch(int fd, int16_t events) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    watched_.push_back({fd, events, 0});
  }
  Wake();  // a pause under way knows nothing of it
}

void IdleWait::Unwatch(int fd) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(watched_.begin(), watched_.end(),
                                  [fd](const pollfd& watched) { return watched.fd == fd; });
  SLUICE_CHECK(found != watched_.end(), "Unwatch of a descriptor that is not watched");
  watched_.erase(found);
}

void IdleWait::Wake() {
  wakes_.fetch_add(1);
  // A thread that falls asleep only now looks at wakes_ first. One call of the system wakes all,
  // however many wakes there are until then.
  if (!asleep_.load() || !asleep_.exchange(false)) return;
  const uint64_t one = 1;
  // It fails only when it is readable already.
  if (wake_fd_ >= 0) static_cast<void>(!write(wake_fd_, &one, sizeof(one)));
}

bool IdleWait::Pause(Awaited awaited, int64_t longest_ns) {
  const int64_t most_ns = std::clamp(longest_ns, kShortestNs, kLongestNs);
  if (awaited != Awaited::kRanks) {
    return SleepUpTo(std::min(most_ns, wake_fd_ >= 0 ? kLongestNs : Backoff::kLongestNs));
  }
  const int64_t pause_ns = backoff_.NextNs();
  if (pause_ns > 0) return SleepUpTo(std::min(pause_ns, most_ns));
  sched_yield();
  return false;
}

bool IdleWait::SleepUpTo(int64_t pause_ns) {
  asleep_.store(true);
  if (const uint64_t wakes = wakes_.load(); std::exchange(seen_, wakes) != wakes) {
    asleep_.store(false);
    backoff_.Reset();
    return true;
  }
  polled_.clear();
  polled_.push_back({wake_fd_, POLLIN, 0});  // ppoll skips a negative one
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    polled_.insert(polled_.end(), watched_.begin(), watched_.end());
  }
  const timespec pause = {0, pause_ns};
  const int ready = ppoll(polled_.data(), polled_.size(), &pause, nullptr);
  asleep_.store(false);
  // The caller looks at everything again, so these are heard.
  seen_ = wakes_.load();
  if (ready <= 0) return false;
  uint64_t count = 0;
  if (polled_[0].revents != 0) static_cast<void>(!read(wake_fd_, &count, sizeof(count)));
  backoff_.Reset();
  return true;
}

}  // namespace sluice
