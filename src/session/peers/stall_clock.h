// A clock of a stall: how long this rank has looked for progress and seen none, and how long it
// goes on.
#ifndef SLUICE_SRC_SESSION_PEERS_STALL_CLOCK_H_
#define SLUICE_SRC_SESSION_PEERS_STALL_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace sluice {

// Two limits run side by side from the last progress on. `timeout` begins anew whenever a rank that
// is waited for says that it has not begun yet. `patience` does not. Times are MonotonicNs's.
class StallClock {
 public:
  // A patience of less than the timeout is as one of the timeout.
  StallClock(absl::Duration timeout, absl::Duration patience)
      : timeout_ns_(absl::ToInt64Nanoseconds(timeout)),
        patience_ns_(std::max(timeout_ns_, absl::ToInt64Nanoseconds(patience))) {}

  // Something has moved, or this rank has been given something new to wait for.
  void NoteMove(int64_t now_ns) {
    last_look_ns_ = now_ns;
    Begin();
  }
  // Nothing has moved here. A caller that stays away for long has not looked. Only an eighth of the
  // timeout counts of such a time, so that one look afterwards cannot find a stall.
  void NoteIdle(int64_t now_ns) {
    const int64_t ns = std::min(now_ns - std::exchange(last_look_ns_, now_ns), timeout_ns_ / 8);
    idle_ns_ += ns;
    since_progress_ns_ += ns;
  }
  // A rank that waits for ranks that get on is not stalled, however long that takes.
  void NoteOthersMoved() { Begin(); }
  // The time that a stream of the caller's takes to come to a run is no stall, either.
  void NoteHeldByCaller() { Begin(); }
  // A rank that is waited for has not begun, and answers.
  void NoteLateness() { idle_ns_ = 0; }

  // It is time to ask the ranks that this one waits for: before LongWait says so.
  bool IsTimeToAsk() const { return idle_ns_ > std::min(timeout_ns_ / 8, kAskNs); }
  bool IsStalled() const { return idle_ns_ > timeout_ns_ || since_progress_ns_ > patience_ns_; }
  // The limit that has passed, if the clock is stalled.
  absl::Duration limit() const {
    return absl::Nanoseconds(idle_ns_ > timeout_ns_ ? timeout_ns_ : patience_ns_);
  }

 private:
  void Begin() { idle_ns_ = since_progress_ns_ = 0; }

  static constexpr int64_t kAskNs = 4'000'000'000;

  const int64_t timeout_ns_;
  const int64_t patience_ns_;
  int64_t last_look_ns_ = 0;
  int64_t idle_ns_ = 0;  // since progress, or word of a rank that has not begun
  int64_t since_progress_ns_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_PEERS_STALL_CLOCK_H_
