// What is remembered of runs by their numbers.
#include "session/transfer/run_history.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "sluice/session.h"

namespace sluice {
namespace {

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

}  // namespace
}  // namespace sluice
