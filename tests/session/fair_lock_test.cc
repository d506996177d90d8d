// A fair lock, and waits that calls end.
#include "base/fair_lock.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <mutex>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "session/base/idle_wait.h"

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

// A descriptor that is ready when told so.
class Signal {
 public:
  Signal() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { EXPECT_GE(fd_, 0); }
  ~Signal() { close(fd_); }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  int fd() const { return fd_; }
  void Raise() { EXPECT_EQ(eventfd_write(fd_, 1), 0); }
  void Lower() {
    eventfd_t count = 0;
    EXPECT_EQ(eventfd_read(fd_, &count), 0);
  }

 private:
  const int fd_;
};

// Pauses until one ends by other than time; how many that took. Bounded, so that a test ends.
int PausesUntilWoken(IdleWait* wait, Awaited awaited) {
  constexpr int kMost = 100000;
  int pauses = 1;
  while (!wait->Pause(awaited) && pauses < kMost) ++pauses;
  EXPECT_LT(pauses, kMost) << "nothing ends it";
  return pauses;
}

TEST(IdleWaitTest, ADescriptorEndsAPauseAsLongAsItIsReady) {
  Signal signal;
  IdleWait wait;
  wait.Watch(signal.fd());
  EXPECT_TRUE(wait.Pause(Awaited::kFiles)) << "there is something new to watch";
  EXPECT_FALSE(wait.Pause(Awaited::kFiles));
  signal.Raise();
  EXPECT_TRUE(wait.Pause(Awaited::kFiles));
  EXPECT_TRUE(wait.Pause(Awaited::kFiles));
  signal.Lower();
  EXPECT_FALSE(wait.Pause(Awaited::kFiles));
  signal.Raise();
  wait.Unwatch(signal.fd());
  EXPECT_FALSE(wait.Pause(Awaited::kFiles));
}

TEST(IdleWaitTest, EachOfSeveralDescriptors) {
  Signal signals[3];
  IdleWait wait;
  for (const Signal& signal : signals) wait.Watch(signal.fd());
  EXPECT_TRUE(wait.Pause(Awaited::kFiles));
  for (Signal& signal : signals) {
    signal.Raise();
    EXPECT_TRUE(wait.Pause(Awaited::kFiles));
    signal.Lower();
  }
  EXPECT_FALSE(wait.Pause(Awaited::kFiles));
  wait.Unwatch(signals[1].fd());
  signals[1].Raise();
  EXPECT_FALSE(wait.Pause(Awaited::kFiles));
  signals[2].Raise();
  EXPECT_TRUE(wait.Pause(Awaited::kFiles));
}

TEST(IdleWaitTest, WritableDescriptorsCanBeWatchedToo) {
  Signal signal;  // may be written from the start
  IdleWait wait;
  wait.Watch(signal.fd(), POLLOUT);
  EXPECT_TRUE(wait.Pause(Awaited::kFiles));
  EXPECT_TRUE(wait.Pause(Awaited::kFiles));
}

TEST(IdleWaitTest, WakingEndsOnePause) {
  IdleWait wait;
  for (const Awaited awaited : {Awaited::kNothing, Awaited::kFiles}) {
    wait.Wake();
    wait.Wake();
    EXPECT_TRUE(wait.Pause(awaited)) << "woken before";
    EXPECT_FALSE(wait.Pause(awaited));
  }
}

TEST(IdleWaitTest, WakingAndDescriptorsEndPausesThatRanksAreAwaitedIn) {
  Signal signal;
  IdleWait wait;
  wait.Wake();
  // It yields so often before it sleeps.
  EXPECT_EQ(PausesUntilWoken(&wait, Awaited::kRanks), Backoff::kYields + 1);
  wait.Watch(signal.fd());
  EXPECT_EQ(PausesUntilWoken(&wait, Awaited::kRanks), Backoff::kYields + 1) << "begins anew";
  signal.Raise();
  EXPECT_EQ(PausesUntilWoken(&wait, Awaited::kRanks), Backoff::kYields + 1);
  signal.Lower();
  for (int i = 0; i < Backoff::kYields + 200; ++i) ASSERT_FALSE(wait.Pause(Awaited::kRanks));
  signal.Raise();
  EXPECT_EQ(PausesUntilWoken(&wait, Awaited::kRanks), 1) << "it sleeps by now";
}

TEST(IdleWaitTest, ResetBeginsAnew) {
  IdleWait wait;
  for (int i = 0; i < Backoff::kYields + 10; ++i) ASSERT_FALSE(wait.Pause(Awaited::kRanks));
  wait.Reset();
  wait.Wake();
  EXPECT_EQ(PausesUntilWoken(&wait, Awaited::kRanks), Backoff::kYields + 1);
}

TEST(IdleWaitTest, AnotherThreadWakesAndWatches) {
  Signal signal;
  IdleWait wait;
  for (int round = 0; round < 200; ++round) {
    std::thread other([&wait, &signal, round] {
      if (round % 2 == 0) {
        wait.Wake();
      } else {
        wait.Watch(signal.fd());
        wait.Unwatch(signal.fd());
      }
    });
    PausesUntilWoken(&wait, Awaited::kNothing);
    other.join();
  }
  // The last one may have come while nobody slept any more.
  wait.Pause(Awaited::kNothing);
  EXPECT_FALSE(wait.Pause(Awaited::kNothing)) << "each has ended one pause";
}

TEST(IdleWaitDeathTest, UnwatchesWhatIsWatched) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  IdleWait wait;
  EXPECT_DEATH(wait.Unwatch(0), "not watched");
}

}  // namespace
}  // namespace sluice
