// Runs by their numbers: which are over, how they ended, and which cancels are pending.
#include "session/transfer/run_history.h"

#include <atomic>
#include <set>
#include <thread>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "oracle/random_layout.h"
#include "session/base/run_id.h"
#include "session/transfer/done_runs.h"
#include "session/transfer/pending_cancels.h"
#include "session/transfer/run_outcomes.h"
#include "sluice/session.h"

namespace sluice {
namespace {

// ---- What is remembered of runs by their numbers.

constexpr RunId kRuns = Session::kMaxRunsInFlight;

TEST(RunHistoryTest, RunsExistOnceTheyAreStarted) {
  RunHistory history;
  EXPECT_TRUE(absl::IsInvalidArgument(history.Check(1)));
  history.Begin();
  EXPECT_EQ(history.last(), 1);
  EXPECT_TRUE(history.Check(1).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(history.Check(0)));
  EXPECT_TRUE(absl::IsInvalidArgument(history.Check(2)));
  EXPECT_FALSE(history.IsOver(1));
}

TEST(RunHistoryTest, RunsEndInAnyOrder) {
  RunHistory history;
  for (int i = 0; i < 3; ++i) history.Begin();
  history.End(2, 7, absl::OkStatus());
  EXPECT_TRUE(history.IsOver(2));
  EXPECT_FALSE(history.IsOver(1));
  EXPECT_EQ(history.all_over_up_to(), 0);
  history.End(1, 5, absl::UnavailableError("gone"));
  EXPECT_EQ(history.all_over_up_to(), 2);
  EXPECT_EQ(history.ends(), 2);
  EXPECT_EQ(history.OutcomeOf(1), absl::UnavailableError("gone"));
  EXPECT_TRUE(history.OutcomeOf(2).ok());
  EXPECT_EQ(history.TransferOf(1), 5);
  EXPECT_EQ(history.TransferOf(2), 7);
}

TEST(RunHistoryTest, TransfersOfOldRunsAreForgotten) {
  RunHistory history;
  for (RunId run = 1; run <= 5 * kRuns; ++run) {
    history.Begin();
    history.End(run, static_cast<int>(run % 3), absl::OkStatus());
  }
  EXPECT_EQ(history.TransferOf(kRuns), -1);
  EXPECT_EQ(history.TransferOf(kRuns + 1), (kRuns + 1) % 3);
  EXPECT_EQ(history.TransferOf(5 * kRuns), (5 * kRuns) % 3);
}

TEST(RunHistoryTest, ACancelIsPendingUntilTheRanksAgree) {
  RunHistory history;
  history.Begin();
  EXPECT_TRUE(history.BeginCancel(1));
  EXPECT_TRUE(history.IsCancelPending(1));
  EXPECT_FALSE(history.BeginCancel(1));
  history.EndCancel(1);
  EXPECT_FALSE(history.IsCancelPending(1));
  EXPECT_EQ(history.ends(), 1);
  EXPECT_FALSE(history.BeginCancel(1));  // once for all
}

// ---- How runs ended, however long ago.

TEST(RunSetTest, HoldsWhatWasInserted) {
  oracle::Dice dice(1);
  RunSet set;
  std::set<int64_t> expected;
  for (int i = 0; i < 3000; ++i) {
    const int64_t run = dice.Chance(50) ? dice.Between(1, 300) : dice.Between(1, 1 << 24);
    EXPECT_EQ(set.Has(run), expected.count(run) > 0);
    EXPECT_EQ(set.Insert(run), expected.insert(run).second);
    EXPECT_TRUE(set.Has(run));
  }
  for (int64_t run = 1; run < 20000; ++run) ASSERT_EQ(set.Has(run), expected.count(run) > 0);
}

TEST(RunOutcomesTest, OldOnesKeepTheirCode) {
  RunOutcomes outcomes;
  for (int64_t run = 1; run <= 2000; ++run) {
    if (run % 2 == 0) outcomes.Add(run, RunOutcomes::Cancelled(run));
    if (run % 5 == 0 && run % 2 != 0) outcomes.Add(run, absl::InvalidArgumentError("its views"));
  }
  EXPECT_TRUE(outcomes.Of(1).ok());
  EXPECT_TRUE(outcomes.Of(1999).ok());
  EXPECT_TRUE(outcomes.Of(3000).ok());
  EXPECT_EQ(outcomes.Of(2), absl::CancelledError("run 2 was cancelled"));
  EXPECT_EQ(outcomes.Of(2000), absl::CancelledError("run 2000 was cancelled"));
  EXPECT_EQ(outcomes.Of(1995), absl::InvalidArgumentError("its views"));
  EXPECT_THAT(outcomes.Of(5),
              Fails(absl::StatusCode::kInvalidArgument, "run 5 failed; the messages"));
}

// ---- What any thread may ask of runs: which are done, and which cancels are pending.

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
