// Pauses of a thread that drives a session, between two looks at what the session waits for.
#ifndef SLUICE_SRC_SESSION_BASE_IDLE_WAIT_H_
#define SLUICE_SRC_SESSION_BASE_IDLE_WAIT_H_

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "session/base/backoff.h"

namespace sluice {

// The things that a session waits for. Ranks are heard only by asking again and again. Files wake a
// thread that sleeps, and are waited for in the kernel.
enum class Awaited : uint8_t {
  kNothing,  // nothing is in flight
  kFiles,    // watched descriptors alone: storage
  kRanks,    // messages of other ranks, beside them
};

// Decides nothing: when it returns, the caller looks at everything again.
// Thread: Pause and Reset one at a time; the others any.
class IdleWait {
 public:
  // The longest pause while no rank is awaited: how soon a session that has nothing to do hears of
  // a failure elsewhere.
  static constexpr int64_t kLongestNs = 50'000'000;
  // The shortest pause: an overdue task may have to wait for something else first.
  static constexpr int64_t kShortestNs = 50'000;

  IdleWait();
  ~IdleWait();
  IdleWait(const IdleWait&) = delete;
  IdleWait& operator=(const IdleWait&) = delete;

  // Ends pauses while `fd` has one of `events` (of poll.h). To be paired with Unwatch, before `fd`
  // is closed. The watcher makes the descriptor quiet when it looks: a descriptor that stays ready
  // means no pause.
  void Watch(int fd, int16_t events = POLLIN);
  void Unwatch(int fd);

  // Ends the pause under way, or else the next one that sleeps. Takes no lock, and calls the system
  // only if somebody sleeps.
  void Wake();

  // Something has moved: the next pauses are short.
  void Reset() { backoff_.Reset(); }

  // Pauses until a watched descriptor is ready or somebody wakes it, up to kLongestNs, and to
  // `longest_ns`: until something is due. While ranks are awaited, pauses for no longer than
  // Backoff does. True if the pause was ended by other than time.
  bool Pause(Awaited awaited, int64_t longest_ns = kLongestNs);

 private:
  bool SleepUpTo(int64_t pause_ns);

  const int wake_fd_;  // an eventfd; -1: the process had no descriptor left, so pauses stay short
  std::atomic<uint64_t> wakes_{0};
  std::atomic<bool> asleep_{false};
  uint64_t seen_ = 0;  // of wakes_, by the last pause that slept
  std::mutex mutex_;
  std::vector<pollfd> watched_;  // guarded by mutex_
  Backoff backoff_;
  std::vector<pollfd> polled_;  // scratch
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_IDLE_WAIT_H_
