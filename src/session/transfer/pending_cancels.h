// Runs that have been cancelled while the ranks have not agreed yet on what is still carried out:
// readable from any thread.
#ifndef SLUICE_SRC_SESSION_TRANSFER_PENDING_CANCELS_H_
#define SLUICE_SRC_SESSION_TRANSFER_PENDING_CANCELS_H_

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "session/base/run_id.h"
#include "sluice/session.h"

namespace sluice {

// Add and Remove: the session's thread alone.
class PendingCancels {
 public:
  bool Has(RunId run) const {
    if (count_.load(std::memory_order_acquire) == 0) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::find(runs_.begin(), runs_.end(), run) != runs_.end();
  }
  void Add(RunId run) {
    const std::lock_guard<std::mutex> lock(mutex_);
    runs_.push_back(run);
    count_.store(runs_.size(), std::memory_order_release);
  }
  void Remove(RunId run) {
    const std::lock_guard<std::mutex> lock(mutex_);
    runs_.erase(std::remove(runs_.begin(), runs_.end(), run), runs_.end());
    count_.store(runs_.size(), std::memory_order_release);
  }

 private:
  std::atomic<size_t> count_ = 0;
  mutable std::mutex mutex_;
  std::vector<RunId> runs_;  // guarded by mutex_
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_PENDING_CANCELS_H_
