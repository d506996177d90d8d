// A queue by due time.
#include "fuse/delayed_replies.h"

#include <utility>

namespace sluice::fuse {

DelayedReplies::DelayedReplies(int threads, int hold) : hold_(static_cast<size_t>(hold)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

void DelayedReplies::Add(int64_t delay_ns, std::function<void()> reply) {
  AddEntry(delay_ns, std::move(reply), true);
}

void DelayedReplies::AddFree(int64_t delay_ns, std::function<void()> reply) {
  AddEntry(delay_ns, std::move(reply), false);
}

void DelayedReplies::AddEntry(int64_t delay_ns, std::function<void()> reply, bool held) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return reply();
  Entry entry{Clock::now() + std::chrono::nanoseconds(delay_ns), added_++, std::move(reply)};
  if (!held || hold_ == 0) {
    waiting_.push(std::move(entry));
    changed_.notify_one();
    return;
  }
  held_.push_back(std::move(entry));
  if (held_.size() == hold_) Release();
}

void DelayedReplies::Release() {
  for (Entry& entry : held_) waiting_.push(std::move(entry));
  held_.clear();
  hold_ = 0;
  changed_.notify_all();
}

void DelayedReplies::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    if (waiting_.empty()) {
      if (stopping_) return;
      changed_.wait(lock);
      continue;
    }
    const Clock::time_point due = waiting_.top().due;
    if (!stopping_ && due > Clock::now()) {
      changed_.wait_until(lock, due);
      continue;
    }
    // The queue gives no way to move out of it; the entry leaves in the next line.
    const std::function<void()> reply = std::move(const_cast<Entry&>(waiting_.top()).reply);
    waiting_.pop();
    lock.unlock();
    reply();
    lock.lock();
  }
}

void DelayedReplies::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    Release();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace sluice::fuse
