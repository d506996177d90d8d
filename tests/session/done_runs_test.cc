// What any thread may ask of runs: which are done, and which cancels are pending.
#include "session/transfer/done_runs.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "session/transfer/pending_cancels.h"

namespace sluice {
namespace {

constexpr RunId kWindow = Session::kMaxRunsInFlight;

TEST(DoneRunsTest, RunsEndInAnyOrderWithinTheWindow) {
  DoneRuns done;
  EXPECT_TRUE(done.Has(0));
  EXPECT_FALSE(done.Has(1));
  done.Add(3);
  done.Add(kWindow);
  EXPECT_EQ(done.all_up_to(), 0);
  EXPECT_FALSE(done.Has(1));
  EXPECT_FALSE(done.Has(2));
  EXPECT_TRUE(done.Has(3));
  EXPECT_FALSE(done.Has(kWindow - 1));
  EXPECT_TRUE(done.Has(kWindow));
  EXPECT_FALSE(done.Has(kWindow + 1));
  done.Add(2);
  EXPECT_EQ(done.all_up_to(), 0);
  done.Add(1);
  EXPECT_EQ(done.all_up_to(), 3);
  for (RunId run = 4; run < kWindow; ++run) {
    EXPECT_FALSE(done.Has(run));
    EXPECT_EQ(done.all_up_to(), run - 1);
    done.Add(run);
  }
  EXPECT_EQ(done.all_up_to(), kWindow);
}

TEST(DoneRunsTest, ALateRunIsNotTakenForAnEarlierOne) {
  DoneRuns done;
  done.Add(2);
  // Each of them has the place of run 2 in a word of 16, 32 or 64 bits.
  for (const RunId distance : {16, 32, 64}) EXPECT_FALSE(done.Has(2 + distance));
}

TEST(DoneRunsDeathTest, ARunEndsOnceAndInItsWindow) {
  DoneRuns done;
  done.Add(1);
  EXPECT_DEATH(done.Add(1), "out of turn");
  EXPECT_DEATH(done.Add(2 + kWindow), "out of turn");
}

// Runs end in pairs, the later one first.
TEST(DoneRunsTest, AnotherThreadSeesRunsStayDone) {
  constexpr RunId kRuns = 20000;
  DoneRuns done;
  std::atomic<RunId> added = 0;
  std::thread adder([&] {
    for (RunId run = 1; run < kRuns; run += 2) {
      done.Add(run + 1);
      added.store(run + 1, std::memory_order_release);
      done.Add(run);
    }
  });
  RunId seen = 0;
  int wrong = 0;
  while (seen < kRuns) {
    seen = added.load(std::memory_order_acquire);
    wrong += done.Has(seen) ? 0 : 1;
    wrong += seen >= 2 && !done.Has(seen - 2) ? 1 : 0;
    wrong += done.Has(kRuns + 1) ? 1 : 0;
  }
  adder.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(done.all_up_to(), kRuns);
}

TEST(PendingCancelsTest, ACancelIsPendingUntilItIsRemoved) {
  PendingCancels pending;
  EXPECT_FALSE(pending.Has(3));
  pending.Add(3);
  pending.Add(5);
  EXPECT_TRUE(pending.Has(3));
  EXPECT_FALSE(pending.Has(4));
  pending.Remove(3);
  pending.Remove(4);
  EXPECT_FALSE(pending.Has(3));
  EXPECT_TRUE(pending.Has(5));
  pending.Remove(5);
  EXPECT_FALSE(pending.Has(5));
}

}  // namespace
}  // namespace sluice
