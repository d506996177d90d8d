// Replies come in the order in which they are due, once each, however many wait.
#include "fuse/delayed_replies.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "gtest/gtest.h"

namespace sluice::fuse {
namespace {

constexpr int64_t kLongNs = int64_t{3600} * 1'000'000'000;

// Counts down; whoever waits goes on at 0.
class Latch {
 public:
  explicit Latch(int count) : count_(count) {}
  void CountDown() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--count_ == 0) zero_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    zero_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable zero_;
  int count_;
};

TEST(DelayedRepliesTest, ComeInTheOrderInWhichTheyAreDue) {
  std::vector<int> order;
  DelayedReplies replies(1, 0);
  for (const int n : {3, 1, 4, 2}) {
    replies.Add(n * kLongNs, [n, &order] { order.push_back(n); });
  }
  replies.Stop();  // has no patience, but keeps the order
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

TEST(DelayedRepliesTest, ALateOneKeepsNobodyWaiting) {
  Latch soon(100);
  std::atomic<bool> late = false;
  DelayedReplies replies(1, 0);
  replies.Add(kLongNs, [&late] { late = true; });
  for (int i = 0; i < 100; ++i) replies.Add(0, [&soon] { soon.CountDown(); });
  soon.Wait();
  EXPECT_FALSE(late);
  replies.Stop();
  EXPECT_TRUE(late) << "the end runs what is left";
}

TEST(DelayedRepliesTest, HoldsTheFirstUntilAllOfThemAreThere) {
  constexpr int kHeld = 50;
  std::atomic<int> ran = 0;
  Latch all(kHeld), free(1);
  DelayedReplies replies(2, kHeld);
  for (int i = 1; i < kHeld; ++i) {
    replies.Add(0, [&ran, &all] {
      ++ran;
      all.CountDown();
    });
  }
  replies.AddFree(0, [&free] { free.CountDown(); });
  free.Wait();
  EXPECT_EQ(ran, 0);
  replies.Add(0, [&all] { all.CountDown(); });
  all.Wait();
  Latch later(1);
  replies.Add(0, [&later] { later.CountDown(); });  // held no more
  later.Wait();
}

TEST(DelayedRepliesTest, TheEndRunsEachOnce) {
  std::atomic<int> ran = 0;
  DelayedReplies replies(3, 1000);
  for (int i = 0; i < 500; ++i) replies.Add(i % 2 == 0 ? 0 : kLongNs, [&ran] { ++ran; });
  replies.Stop();
  EXPECT_EQ(ran, 500);
  replies.Add(kLongNs, [&ran] { ++ran; });
  EXPECT_EQ(ran, 501) << "after the end, at once";
}

}  // namespace
}  // namespace sluice::fuse
