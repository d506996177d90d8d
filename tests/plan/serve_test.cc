// Which ranks reduce what, in cases small enough to be worked out by hand.
#include "plan/serve.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int64_t kMiB = int64_t{1} << 20;

int64_t ElementsOf(const ServeGroup& group, size_t slot) {
  int64_t elements = 0;
  for (int32_t s = group.first_share[slot]; s < group.first_share[slot + 1]; ++s) {
    const Share& share = group.shares[static_cast<size_t>(s)];
    elements += share.end - share.begin;
  }
  return elements;
}

TEST(ServeReducedTest, HoldersThatNeedTheResultReduceIt) {
  const std::vector<int> holders = {0, 1};
  const std::vector<int> ranks = {1, 5};
  const ServeTable table =
      ServeReduced({.holders = holders}, {{ranks, 1000, 1}}, {0, 0, 0, 0, 0, 1});
  ASSERT_THAT(table.needs, SizeIs(1));
  EXPECT_THAT(table.needs[0].ranks, ElementsAre(1, 5));
  EXPECT_EQ(table.needs[0].replica, -1);
  EXPECT_FALSE(table.needs[0].gathers);
  ASSERT_THAT(table.groups, SizeIs(1));
  EXPECT_THAT(table.groups[0].candidates, ElementsAre(1));
}

TEST(ServeReducedTest, OtherwiseAllHoldersReduceEqualParts) {
  const std::vector<int> holders = {0, 1};
  const std::vector<int> ranks = {2};
  const ServeTable table =
      ServeReduced({.holders = holders, .contribution_bytes = 4, .result_bytes = 4},
                   {{ranks, kMiB, 1}}, {0, 0, 1});
  ASSERT_THAT(table.groups, SizeIs(1));
  EXPECT_THAT(table.groups[0].candidates, ElementsAre(0, 1));
  EXPECT_EQ(ElementsOf(table.groups[0], 0), kMiB / 2);
  EXPECT_EQ(ElementsOf(table.groups[0], 1), kMiB / 2);
  EXPECT_TRUE(table.groups[0].rotates);
}

// Rank 0 has to reduce 600,000 elements. Of the million that either may reduce, 200,000 bring both
// to 800,000.
TEST(ServeReducedTest, ThoseWithAChoiceLevelTheLoads) {
  const std::vector<int> holders = {0, 1};
  const std::vector<int> near = {0};
  const std::vector<int> far = {2};
  const ServeTable table =
      ServeReduced({.holders = holders}, {{far, 1'000'000, 1}, {near, 600'000, 1}}, {0, 0, 1});
  ASSERT_THAT(table.groups, SizeIs(2));
  EXPECT_THAT(table.groups[0].candidates, ElementsAre(0));
  EXPECT_EQ(ElementsOf(table.groups[0], 0), 600'000);
  EXPECT_THAT(table.groups[1].candidates, ElementsAre(0, 1));
  EXPECT_EQ(ElementsOf(table.groups[1], 0), 200'000);
  EXPECT_EQ(ElementsOf(table.groups[1], 1), 800'000);
  EXPECT_FALSE(table.groups[1].rotates);
  EXPECT_THAT(table.group_of_need, ElementsAre(1, 0));
}

// A node that has whole replicas and more ranks that need than contribute.
TEST(ServeReducedTest, OnAReducingNodeThoseThatNeedReduceAReplicaInTurn) {
  const std::vector<int> holders = {0, 1, 2, 3};
  const absl::flat_hash_set<int> reducing = {0};
  const std::vector<int> ranks = {4, 5, 6};
  const ServeTable table =
      ServeReduced({.holders = holders, .contributions = 2, .reducing_nodes = &reducing},
                   {{ranks, 1000, 1}, {ranks, 1000, 1}}, {0, 0, 0, 0, 0, 0, 1});
  // Rank 6, on another node, is served by holders.
  ASSERT_THAT(table.needs, SizeIs(4));
  EXPECT_THAT(table.needs[0].ranks, ElementsAre(4, 5));
  EXPECT_EQ(table.needs[0].replica, 0);
  EXPECT_THAT(table.needs[1].ranks, ElementsAre(6));
  EXPECT_EQ(table.needs[1].replica, -1);
  EXPECT_THAT(table.needs[2].ranks, ElementsAre(4, 5));
  EXPECT_EQ(table.needs[2].replica, 1);
  ASSERT_THAT(table.groups, SizeIs(2));
  EXPECT_THAT(table.groups[0].candidates, ElementsAre(4, 5));
  EXPECT_THAT(table.groups[1].candidates, ElementsAre(0, 1, 2, 3));
}

// Two contributions on each of two nodes. The sum of the first node crosses once to the second,
// where the last stretch is, so the ranks there are the owners.
TEST(ServeReducedTest, GatheringEndsWhereTheLeastCrosses) {
  const std::vector<int> holders = {0, 1, 2, 3};
  const std::vector<int> ranks = {4};
  Reducers reducers = {.holders = holders, .contributions = 4, .may_gather = true};
  const std::vector<int> node = {0, 0, 1, 1, 2};
  const ServeTable far = ServeReduced(reducers, {{ranks, 1000, 1}}, node);
  ASSERT_THAT(far.needs, SizeIs(1));
  EXPECT_TRUE(far.needs[0].gathers);
  EXPECT_THAT(far.groups[0].candidates, ElementsAre(2, 3));
  // One holder there needs the result itself, so it is the owner of all of it.
  const std::vector<int> inside = {3};
  const ServeTable near = ServeReduced(reducers, {{inside, 1000, 1}}, node);
  EXPECT_TRUE(near.needs[0].gathers);
  EXPECT_THAT(near.groups[0].candidates, ElementsAre(3));
  reducers.may_gather = false;
  const ServeTable direct = ServeReduced(reducers, {{ranks, 1000, 1}}, node);
  EXPECT_FALSE(direct.needs[0].gathers);
  EXPECT_THAT(direct.groups[0].candidates, ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace sluice
