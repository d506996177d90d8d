// Ranks in messages.
#include "mesh/ranks_text.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(RankRunsTextTest, JoinsNeighbours) {
  EXPECT_EQ(RankRunsText({}), "");
  EXPECT_EQ(RankRunsText({7}), "7");
  EXPECT_EQ(RankRunsText({0, 1}), "0, 1");
  EXPECT_EQ(RankRunsText({0, 1, 2, 5}), "0-2, 5");
}

TEST(RankRunsTextTest, CountsWhatItLeavesOut) {
  EXPECT_EQ(RankRunsText({0, 1, 2, 5, 7, 8, 9}, 2), "0-2, 5 and 3 more");
  EXPECT_EQ(RankRunsText({0, 1, 2, 5}, 2), "0-2, 5");
}

}  // namespace
}  // namespace sluice
