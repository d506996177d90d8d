// How long this rank has looked for progress and seen none.
#ifndef SLUICE_SRC_SESSION_PEERS_STALL_CLOCK_H_
#define SLUICE_SRC_SESSION_PEERS_STALL_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace sluice {

// Times are MonotonicNs's.
class StallClock {
 public:
  explicit StallClock(absl::Duration timeout) : timeout_ns_(absl::ToInt64Nanoseconds(timeout)) {}

  // Something has moved, or this rank has been given something new to wait for.
  void NoteMove(int64_t now_ns) {
    last_look_ns_ = now_ns;
    idle_ns_ = 0;
  }
  // Nothing has moved here. A caller that stays away for long has not looked. Of such a time at
  // most an eighth of the timeout counts, so that one look afterwards cannot find a stall.
  void NoteIdle(int64_t now_ns) {
    idle_ns_ += std::min(now_ns - std::exchange(last_look_ns_, now_ns), timeout_ns_ / 8);
  }
  // Who waits for ranks that get on is not stalled, however long that takes.
  void NoteOthersMoved() { idle_ns_ = 0; }
  // Nor is the time a stall that a stream of the caller's takes to come to a run.
  void NoteHeldByCaller() { idle_ns_ = 0; }

  // It is time to ask the ranks that this one waits for.
  bool IsTimeToAsk() const { return idle_ns_ > timeout_ns_ / 8; }
  bool IsStalled() const { return idle_ns_ > timeout_ns_; }

 private:
  const int64_t timeout_ns_;
  int64_t last_look_ns_ = 0;
  int64_t idle_ns_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_PEERS_STALL_CLOCK_H_
