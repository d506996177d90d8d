// How a rank waits for others without keeping them from running.
//
// On a machine with fewer cores than ranks, who polls without yielding starves the peer it waits
// for. So an idle rank yields at once, and sleeps when nothing has moved for a while.
#ifndef SLUICE_SRC_SESSION_BACKOFF_H_
#define SLUICE_SRC_SESSION_BACKOFF_H_

#include <sched.h>
#include <time.h>

#include <algorithm>

namespace sluice {

class Backoff {
 public:
  void Reset() { idle_polls_ = 0; }

  void Pause() {
    if (idle_polls_ < kYields) {
      ++idle_polls_;
      sched_yield();
      return;
    }
    // Doubles from 50 us to 800 us: short beside the timeout, long beside a poll.
    const int doublings = std::min((idle_polls_++ - kYields) / kSleepsPerLength, 4);
    const timespec pause = {0, 50'000L << doublings};
    nanosleep(&pause, nullptr);
  }

 private:
  static constexpr int kYields = 2000;
  static constexpr int kSleepsPerLength = 20;
  int idle_polls_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BACKOFF_H_
