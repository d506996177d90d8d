// Does things later: the clock of the slow file system.
#ifndef SLUICE_TESTS_FUSE_DELAYED_REPLIES_H_
#define SLUICE_TESTS_FUSE_DELAYED_REPLIES_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

namespace sluice::fuse {

// Any number of replies wait at once, as each is an entry and not a thread. A few threads carry out
// the replies that are due, in the order in which they became due.
class DelayedReplies {
 public:
  // The first `hold` replies are kept until all of them are there: so a test can see that they are
  // under way together. 0: none are.
  DelayedReplies(int threads, int hold);
  // As Stop.
  ~DelayedReplies() { Stop(); }
  DelayedReplies(const DelayedReplies&) = delete;
  DelayedReplies& operator=(const DelayedReplies&) = delete;

  // Runs `reply` once, on another thread, `delay_ns` from now.
  void Add(int64_t delay_ns, std::function<void()> reply);
  // The same, not counted among those that are held.
  void AddFree(int64_t delay_ns, std::function<void()> reply);

  // Runs at once what is still there, and ends the threads. What is added later runs at once.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Clock::time_point due;
    uint64_t number;  // those that are due together stay in order
    std::function<void()> reply;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.due != b.due ? a.due > b.due : a.number > b.number;
    }
  };

  void AddEntry(int64_t delay_ns, std::function<void()> reply, bool held);
  void Release();
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Entry, std::vector<Entry>, Later> waiting_;
  std::vector<Entry> held_;
  size_t hold_;
  uint64_t added_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sluice::fuse

#endif  // SLUICE_TESTS_FUSE_DELAYED_REPLIES_H_
