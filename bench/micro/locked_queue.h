// A queue as a loader with threads has it: a mutex, two condition variables and a ring of items.
#ifndef SLUICE_BENCH_MICRO_LOCKED_QUEUE_H_
#define SLUICE_BENCH_MICRO_LOCKED_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice::bench {

// Items are cells of `cell_bytes`, at least 8, of which a thread fills `items`: each with its
// number modulo `numbers`. At most `depth` are there at once.
//
// Thread: one takes and releases.
class LockedQueue {
 public:
  LockedQueue(int depth, int64_t cell_bytes, int64_t items, int64_t numbers)
      : depth_(depth),
        cell_bytes_(cell_bytes),
        items_(items),
        numbers_(numbers),
        memory_(static_cast<size_t>(depth * cell_bytes)),
        thread_([this] { Fill(); }) {}

  ~LockedQueue() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    released_one_.notify_all();
    thread_.join();
  }

  LockedQueue(const LockedQueue&) = delete;
  LockedQueue& operator=(const LockedQueue&) = delete;

  // Takes the next item, which `*item` becomes the number of, and gives it back. False: it was not
  // there, and was waited for.
  bool TakeAndRelease(int64_t* item) {
    bool was_there = true;
    const std::byte* cell = nullptr;
    {
      std::unique_lock lock(mutex_);
      was_there = filled_ > taken_;
      filled_one_.wait(lock, [this] { return filled_ > taken_; });
      cell = CellOf(taken_++);
    }
    std::memcpy(item, cell, sizeof(*item));
    {
      const std::lock_guard lock(mutex_);
      ++released_;
    }
    released_one_.notify_one();
    return was_there;
  }

 private:
  std::byte* CellOf(int64_t number) { return memory_.data() + number % depth_ * cell_bytes_; }

  void Fill() {
    for (int64_t number = 0; number < items_; ++number) {
      {
        std::unique_lock lock(mutex_);
        released_one_.wait(lock, [&] { return stop_ || number - released_ < depth_; });
        if (stop_) return;
      }
      const int64_t item = number % numbers_;
      std::memcpy(CellOf(number), &item, sizeof(item));
      {
        const std::lock_guard lock(mutex_);
        ++filled_;
      }
      filled_one_.notify_one();
    }
  }

  const int64_t depth_;
  const int64_t cell_bytes_;
  const int64_t items_;
  const int64_t numbers_;
  std::vector<std::byte> memory_;
  std::mutex mutex_;  // for what follows
  std::condition_variable filled_one_;
  std::condition_variable released_one_;
  int64_t filled_ = 0;
  int64_t taken_ = 0;
  int64_t released_ = 0;
  bool stop_ = false;
  std::thread thread_;  // begins when all of the above is there
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_MICRO_LOCKED_QUEUE_H_
