// The runs that are done: any thread may read while the session's adds to them.
#ifndef SLUICE_SRC_SESSION_TRANSFER_DONE_RUNS_H_
#define SLUICE_SRC_SESSION_TRANSFER_DONE_RUNS_H_

#include <atomic>
#include <cstdint>

#include "session/base/run_id.h"
#include "sluice/session.h"
#include "tensor/check.h"

namespace sluice {

// All runs up to a number, and some of the next kMaxRunsInFlight: one word.
class DoneRuns {
 public:
  bool Has(RunId run) const {
    const uint64_t word = word_.load(std::memory_order_acquire);
    const RunId all = AllUpTo(word);
    if (run <= all) return true;
    return run - all <= kWindow && (word >> (run - all - 1) & 1) != 0;
  }

  // `run` is at most kMaxRunsInFlight above all_up_to(). The session's thread alone.
  void Add(RunId run) {
    const uint64_t word = word_.load(std::memory_order_relaxed);
    RunId all = AllUpTo(word);
    SLUICE_CHECK(run > all && run - all <= kWindow, "a run ends out of turn");
    uint64_t later = (word & kMask) | uint64_t{1} << (run - all - 1);
    while ((later & 1) != 0) {
      later >>= 1;
      ++all;
    }
    word_.store(static_cast<uint64_t>(all) << kWindow | later, std::memory_order_release);
  }

  RunId all_up_to() const { return AllUpTo(word_.load(std::memory_order_relaxed)); }

 private:
  static constexpr int kWindow = static_cast<int>(Session::kMaxRunsInFlight);
  static constexpr uint64_t kMask = (uint64_t{1} << kWindow) - 1;
  static RunId AllUpTo(uint64_t word) { return static_cast<RunId>(word >> kWindow); }
  std::atomic<uint64_t> word_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_DONE_RUNS_H_
