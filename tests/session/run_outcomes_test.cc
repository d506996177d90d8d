// How runs ended, however long ago.
#include "session/transfer/run_outcomes.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"

namespace sluice {
namespace {

using testing::HasSubstr;

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
  EXPECT_EQ(outcomes.Of(5).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(outcomes.Of(5).message()), HasSubstr("run 5 failed; the messages"));
}

}  // namespace
}  // namespace sluice
