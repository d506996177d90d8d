// A lock that is taken in the order in which it was asked for.
#ifndef SLUICE_SRC_BASE_FAIR_LOCK_H_
#define SLUICE_SRC_BASE_FAIR_LOCK_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace sluice {

// A plain mutex goes back to the thread that has just released it far more often than to one that
// has to be woken. Between a thread that polls all the time and a caller, either could wait for as
// long as the other has something to do. Here nobody comes twice while another waits.
class FairLock {
 public:
  // So named that std::lock_guard takes it.
  void lock() {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t mine = next_++;
    changed_.wait(lock, [this, mine] { return turn_ == mine; });
  }

  void unlock() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++turn_;
      if (turn_ == next_) return;
    }
    changed_.notify_all();
  }

  // How many threads hold it or ask for it. For tests.
  int64_t asking() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int64_t>(next_ - turn_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0;  // the number that the next one to ask will get
  uint64_t turn_ = 0;  // whose turn it is
};

// Holds `lock` until the end of the result. Null: there is nobody to share with.
inline std::unique_lock<FairLock> Hold(FairLock* lock) {
  return lock == nullptr ? std::unique_lock<FairLock>() : std::unique_lock<FairLock>(*lock);
}

}  // namespace sluice

#endif  // SLUICE_SRC_BASE_FAIR_LOCK_H_
