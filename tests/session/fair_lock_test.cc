// The lock that nobody gets twice while another waits.
#include "base/fair_lock.h"

#include <mutex>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(FairLockTest, WhoWaitsComesBeforeWhoHadIt) {
  for (int round = 0; round < 100; ++round) {
    FairLock lock;
    std::vector<char> order;  // guarded by lock
    lock.lock();
    std::thread other([&] {
      const std::lock_guard<FairLock> held(lock);
      order.push_back('b');
    });
    while (lock.asking() < 2) std::this_thread::yield();
    lock.unlock();
    lock.lock();  // at once, before the other can be awake
    order.push_back('a');
    lock.unlock();
    other.join();
    ASSERT_EQ(order, (std::vector<char>{'b', 'a'}));
  }
}

TEST(FairLockTest, InTheOrderInWhichTheyAsked) {
  FairLock lock;
  std::vector<int> order;  // guarded by lock
  std::vector<std::thread> threads;
  lock.lock();
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&lock, &order, i] {
      const std::lock_guard<FairLock> held(lock);
      order.push_back(i);
    });
    while (lock.asking() < i + 2) std::this_thread::yield();
  }
  lock.unlock();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(lock.asking(), 0);
}

TEST(FairLockTest, OneAtATime) {
  constexpr int kTurns = 1000;
  FairLock lock;
  int counted = 0;  // guarded by lock
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&lock, &counted] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const std::lock_guard<FairLock> held(lock);
        ++counted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted, 3 * kTurns);
}

}  // namespace
}  // namespace sluice
