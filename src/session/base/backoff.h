// Pauses of a rank that waits for others, without keeping them from running.
//
// On a machine with fewer cores than ranks, who polls without yielding starves the peer it waits
// for. So an idle rank yields at once, and sleeps when nothing has moved for a while.
#ifndef SLUICE_SRC_SESSION_BASE_BACKOFF_H_
#define SLUICE_SRC_SESSION_BASE_BACKOFF_H_

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

namespace sluice {

class Backoff {
 public:
  void Reset() { idle_polls_ = 0; }

  // How long the next pause is to be; 0: the time of a yield.
  int64_t NextNs() {
    if (idle_polls_ < kYields) {
      ++idle_polls_;
      return 0;
    }
    // Doubles from 50 us to kLongestNs: short beside the timeout, long beside a poll.
    const int doublings = std::min((idle_polls_ - kYields) / kSleepsPerLength, 4);
    if (doublings < 4) ++idle_polls_;
    return kLongestNs >> (4 - doublings);
  }

  void Pause() {
    const timespec pause = {0, NextNs()};
    if (pause.tv_nsec == 0) {
      sched_yield();
    } else {
      nanosleep(&pause, nullptr);
    }
  }

  static constexpr int64_t kLongestNs = 800'000;
  static constexpr int kYields = 2000;

 private:
  static constexpr int kSleepsPerLength = 20;
  int idle_polls_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_BACKOFF_H_
