// The first item begins alone: step by step on a clock of the test's.
#include "session/shard/head_start.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr int64_t kNever = INT64_MAX;

TEST(HeadStartTest, OthersBeginWhenTheFirstItemIsThere) {
  HeadStart head_start(100);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_EQ(head_start.end_ns(), kNever);
  EXPECT_FALSE(head_start.MayBegin(1, 1001));
  EXPECT_TRUE(head_start.holds());
  EXPECT_EQ(head_start.end_ns(), 1100);
  head_start.Ended(0);
  EXPECT_FALSE(head_start.MayBegin(1, 1002));
  head_start.Ended(0);
  EXPECT_FALSE(head_start.holds());
  EXPECT_EQ(head_start.end_ns(), kNever);
  EXPECT_TRUE(head_start.MayBegin(1, 1003));
  EXPECT_TRUE(head_start.MayBegin(2, 1003));
}

TEST(HeadStartTest, OthersBeginWhenTheFirstItemTakesLong) {
  HeadStart head_start(100);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_FALSE(head_start.MayBegin(1, 1099));
  EXPECT_TRUE(head_start.MayBegin(1, 1100));
  EXPECT_FALSE(head_start.holds());
  EXPECT_EQ(head_start.end_ns(), kNever);
  EXPECT_TRUE(head_start.MayBegin(2, 1100));
  head_start.Ended(0);
  EXPECT_TRUE(head_start.MayBegin(3, 1100));
}

TEST(HeadStartTest, AnItemThatIsThereBeforeOthersAreAskedForHoldsNobodyBack) {
  HeadStart head_start(100);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  head_start.Ended(0);
  EXPECT_TRUE(head_start.MayBegin(1, 1000));
  EXPECT_FALSE(head_start.holds());
}

TEST(HeadStartTest, WithoutATimeThereIsNone) {
  HeadStart head_start(0);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_TRUE(head_start.MayBegin(1, 1000));
  EXPECT_EQ(head_start.end_ns(), kNever);
}

TEST(HeadStartTest, MessagesOfOthersWaitForTheFirstItem) {
  HeadStart head_start(100, 500);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_TRUE(head_start.MayBegin(1, 1100));
  EXPECT_TRUE(head_start.MaySend(0, 2000));
  EXPECT_FALSE(head_start.MaySend(1, 2100));
  EXPECT_EQ(head_start.end_ns(), 2600);
  EXPECT_FALSE(head_start.holds());
  EXPECT_FALSE(head_start.MaySend(2, 2599));
  head_start.Ended(0);
  EXPECT_TRUE(head_start.MaySend(1, 2599));
  EXPECT_EQ(head_start.end_ns(), kNever);
  EXPECT_TRUE(head_start.MaySend(2, 2600));
}

TEST(HeadStartTest, MessagesOfOthersWaitNoLongerThanTheLimit) {
  HeadStart head_start(100, 500);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_FALSE(head_start.MaySend(7, 2000));
  EXPECT_TRUE(head_start.MaySend(7, 2500));
  EXPECT_EQ(head_start.end_ns(), kNever);
  EXPECT_TRUE(head_start.MaySend(1, 2500));
}

TEST(HeadStartTest, MessagesWaitForNobodyWithoutALimit) {
  HeadStart head_start(100);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_TRUE(head_start.MaySend(1, 1000));
}

}  // namespace
}  // namespace sluice
