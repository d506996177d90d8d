// Groups, contributions and copies of one mesh of three dimensions.
#include "workload/source_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;

Layout MakeLayout(std::vector<int64_t> mesh, std::vector<int> ranks, const char* placements) {
  return {*Mesh::Create(std::move(mesh), std::move(ranks)), *ParsePlacements(placements)};
}

TEST(SourceGroups, SortsDimensionsByWhatTheyDo) {
  // Coordinates (replica, shard, contribution), row-major.
  const SourceGroups groups(MakeLayout({2, 2, 2}, {70, 1, 2, 3, 4, 5, 60, 7}, "R,S(0),P(max)"));
  EXPECT_THAT(groups.steps(), ElementsAre(ReduceStep{ReduceOp::kMax, 2}));
  EXPECT_EQ(groups.contributions(), 2u);
  EXPECT_THAT(groups.bases(), ElementsAre(0, 2));
  EXPECT_THAT(groups.Holders(0, 0), ElementsAre(70, 4));
  EXPECT_THAT(groups.Holders(0, 1), ElementsAre(1, 5));
  EXPECT_THAT(groups.Holders(2, 0), ElementsAre(2, 60));
  EXPECT_EQ(groups.LowestHolder(0, 0), 4);
  EXPECT_EQ(groups.BaseOf(7), 2);
  EXPECT_EQ(groups.ContributionOf(7), 1u);
  EXPECT_EQ(groups.BaseOf(4), 0);
  EXPECT_EQ(groups.ContributionOf(4), 0u);
}

TEST(SourceGroups, TheFirstPartialDimensionCountsFastest) {
  const SourceGroups groups(MakeLayout({2, 3}, {0, 1, 2, 3, 4, 5}, "P(sum),P(min)"));
  EXPECT_THAT(groups.steps(),
              ElementsAre(ReduceStep{ReduceOp::kSum, 2}, ReduceStep{ReduceOp::kMin, 3}));
  std::vector<int> order;
  for (size_t i = 0; i < groups.contributions(); ++i) order.push_back(groups.LowestHolder(0, i));
  EXPECT_THAT(order, ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(groups.ContributionOf(4), 3u);
}

TEST(SourceGroups, NeighboursWithOneOpCountAsInTheMesh) {
  const SourceGroups groups(
      MakeLayout({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}, "P(sum),P(sum),P(max)"));
  EXPECT_THAT(groups.steps(),
              ElementsAre(ReduceStep{ReduceOp::kSum, 4}, ReduceStep{ReduceOp::kMax, 2}));
  std::vector<int> order;
  for (size_t i = 0; i < groups.contributions(); ++i) order.push_back(groups.LowestHolder(0, i));
  EXPECT_THAT(order, ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_EQ(groups.ContributionOf(4), 2u);
  const SourceGroups apart(MakeLayout({2, 2}, {0, 1, 2, 3}, "P(avg),P(avg)"));
  EXPECT_THAT(apart.steps(),
              ElementsAre(ReduceStep{ReduceOp::kAvg, 2}, ReduceStep{ReduceOp::kAvg, 2}));
  EXPECT_EQ(apart.LowestHolder(0, 1), 2);
}

TEST(SourceGroups, WithoutPartialThereIsOneContribution) {
  const SourceGroups groups(MakeLayout({2, 2}, {0, 1, 2, 3}, "S(0),S(0)"));
  EXPECT_EQ(groups.contributions(), 1u);
  EXPECT_THAT(groups.bases(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(groups.Holders(3, 0), ElementsAre(3));
}

}  // namespace
}  // namespace sluice::bench
