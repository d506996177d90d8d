// In which steps contributions are added up.
#include "plan/gathering.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

TEST(GatheringTest, OnOneNodeTheOwnerAdds) {
  const std::vector<int> node = {0, 0, 0, 0};
  EXPECT_THAT(GatherByNode(2, {0, 1, 2, 3}, node), ElementsAre(GatherStep{0, 2}));
  EXPECT_THAT(GatherEnds({0, 1, 2, 3}, node), ElementsAre(GatherEnd{0, 4, 0, 0, 1}));
}

TEST(GatheringTest, WhatANodeHasCrossesAsASum) {
  const std::vector<int> node = {0, 0, 1, 1, 2, 2};
  const std::vector<int> all = {0, 1, 2, 3, 4, 5};
  EXPECT_THAT(GatherEnds(all, node), ElementsAre(GatherEnd{0, 2, 0, 4, 1}, GatherEnd{2, 4, 1, 3, 2},
                                                 GatherEnd{4, 6, 2, 2, 3}));
  EXPECT_THAT(GatherByNode(4, all, node),
              ElementsAre(GatherStep{0, 0}, GatherStep{2, 2}, GatherStep{4, 4}));
  // Another owner, other adders.
  EXPECT_THAT(GatherByNode(5, all, node),
              ElementsAre(GatherStep{0, 1}, GatherStep{2, 3}, GatherStep{4, 5}));
  // What comes after the owner's node cannot be added up before.
  EXPECT_THAT(GatherByNode(2, all, node), ElementsAre(GatherStep{0, 0}, GatherStep{2, 2}));
  EXPECT_THAT(GatherByNode(1, all, node), ElementsAre(GatherStep{0, 1}));
}

TEST(GatheringTest, OrderCountsNotNodes) {
  const std::vector<int> node = {0, 1, 0, 1};
  for (const GatherEnd& end : GatherEnds({0, 1, 2, 3}, node)) {
    EXPECT_EQ(end.crossings, 2);
    EXPECT_EQ(end.steps, 1);
  }
  EXPECT_THAT(GatherByNode(3, {0, 1, 2, 3}, node), ElementsAre(GatherStep{0, 3}));
  EXPECT_THAT(GatherEnds({0, 2, 3, 1}, node),
              ElementsAre(GatherEnd{0, 2, 0, 2, 1}, GatherEnd{2, 4, 1, 1, 2}));
  EXPECT_THAT(GatherByNode(1, {0, 2, 3, 1}, node), ElementsAre(GatherStep{0, 2}, GatherStep{2, 1}));
}

// A contribution that is alone on its node costs as much alone as in a sum.
TEST(GatheringTest, SingleContributionsJoinTheNextStep) {
  const std::vector<int> node = {0, 1, 1, 2, 3, 3};
  const std::vector<int> all = {0, 1, 2, 3, 4, 5};
  const GatherSteps steps = GatherByNode(5, all, node);
  EXPECT_THAT(steps, ElementsAre(GatherStep{0, 2}, GatherStep{3, 5}));
  EXPECT_THAT(GatherEnds(all, node),
              ElementsAre(GatherEnd{0, 1, 0, 5, 1}, GatherEnd{1, 3, 1, 4, 1},
                          GatherEnd{3, 4, 2, 4, 2}, GatherEnd{4, 6, 3, 3, 2}));
  EXPECT_EQ(StepOf(steps, 0), 0);
  EXPECT_EQ(StepOf(steps, 2), 0);
  EXPECT_EQ(StepOf(steps, 3), 1);
  EXPECT_TRUE(Adds(steps, 2));
  EXPECT_FALSE(Adds(steps, 3));
}

TEST(GatheringTest, AnOwnerThatOnlyNeedsAddsAll) {
  EXPECT_THAT(GatherByNode(2, {0, 1}, std::vector<int>{0, 0, 0}), ElementsAre(GatherStep{0, 2}));
}

}  // namespace
}  // namespace sluice
