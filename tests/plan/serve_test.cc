// Who serves whom, and who reduces what, in cases small enough to be worked out by hand.
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
using ::testing::IsEmpty;
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

TEST(ServeGroupTest, SlotsRotate) {
  ServeGroup group;
  group.candidates = {7, 8, 9};
  EXPECT_EQ(group.CandidateOf(0, 0), 0u);
  EXPECT_EQ(group.CandidateOf(0, 1), 1u);
  EXPECT_EQ(group.CandidateOf(2, 1), 0u);
  EXPECT_EQ(group.CandidateOf(2, 4), 0u);
  EXPECT_EQ(group.SlotOf(0, 1), 2u);
  EXPECT_EQ(group.SlotOf(1, 1), 0u);
  EXPECT_EQ(group.SlotOf(0, 4), 2u);
  group.rotates = false;
  EXPECT_EQ(group.CandidateOf(2, 1), 2u);
  EXPECT_EQ(group.SlotOf(2, 1), 2u);
}

TEST(ServeTest, WhoHasItIsServedByNobody) {
  const std::vector<int> ranks = {1, 0};
  const ServeTable table = Serve({0, 1}, {{ranks, kMiB, 1}}, {0, 1}, true, true, 4);
  EXPECT_THAT(table.needs, IsEmpty());
  EXPECT_THAT(table.groups, IsEmpty());
}

TEST(ServeTest, ANodeIsServedByItsOwnHolder) {
  const std::vector<int> ranks = {1, 4};
  const ServeTable table = Serve({0, 3}, {{ranks, kMiB, 1}}, {0, 0, 0, 1, 1}, true, true, 4);
  ASSERT_THAT(table.needs, SizeIs(2));
  EXPECT_THAT(table.needs[0].ranks, ElementsAre(1));
  EXPECT_THAT(table.needs[1].ranks, ElementsAre(4));
  EXPECT_TRUE(table.needs[0].apart);
  ASSERT_THAT(table.groups, SizeIs(2));
  EXPECT_THAT(table.groups[0].candidates, ElementsAre(0));
  EXPECT_THAT(table.groups[1].candidates, ElementsAre(3));
  EXPECT_THAT(table.group_of_need, ElementsAre(0, 1));
}

// A node with a holder, and one without: only the second loads all holders.
TEST(ServeTest, OtherNodesAreServedByAllHolders) {
  const std::vector<int> ranks = {1, 5};
  const std::vector<int> node = {0, 0, 0, 1, 1, 2};
  const ServeTable table = Serve({0, 3}, {{ranks, kMiB, 1}}, node, true, true, 1);
  ASSERT_THAT(table.needs, SizeIs(2));
  EXPECT_THAT(table.needs[0].ranks, ElementsAre(1));
  EXPECT_THAT(table.needs[1].ranks, ElementsAre(5));
  ASSERT_THAT(table.groups, SizeIs(2));
  EXPECT_THAT(table.groups[0].candidates, ElementsAre(0));
  EXPECT_THAT(table.groups[1].candidates, ElementsAre(0, 3));
  EXPECT_EQ(ElementsOf(table.groups[1], 0), kMiB / 2);
  EXPECT_EQ(ElementsOf(table.groups[1], 1), kMiB / 2);
  EXPECT_TRUE(table.groups[1].rotates);
}

TEST(ServeTest, LittleIsSentToEachRankByItself) {
  const std::vector<int> ranks = {2, 3};
  // 65,532 bytes, less than a bucket of several members is worth.
  const ServeTable table = Serve({0, 1}, {{ranks, 16'383, 1}}, {0, 0, 1, 1}, false, true, 4);
  ASSERT_THAT(table.needs, SizeIs(1));
  EXPECT_TRUE(table.needs[0].apart);
  ASSERT_THAT(table.groups, SizeIs(1));
  EXPECT_EQ(ElementsOf(table.groups[0], 0), 16'383);
  EXPECT_EQ(table.groups[0].shares[0].end_rank, 1);
  EXPECT_EQ(table.groups[0].shares[1].first_rank, 1);
}

TEST(ServeTest, MuchCrossesToANodeOnceInStripes) {
  const std::vector<int> ranks = {1, 2};
  const std::vector<Want> wants = {{ranks, kMiB, 1}};
  const ServeTable table = Serve({0}, wants, {0, 1, 1}, false, true, 1);
  ASSERT_THAT(table.needs, SizeIs(1));
  EXPECT_FALSE(table.needs[0].apart);
  EXPECT_EQ(table.needs[0].stripes, 2);
  ASSERT_THAT(table.groups, SizeIs(1));
  EXPECT_EQ(ElementsOf(table.groups[0], 0), kMiB);
  ASSERT_THAT(table.groups[0].shares, SizeIs(2));
  EXPECT_EQ(table.groups[0].shares[0].stripe, 0);
  EXPECT_EQ(table.groups[0].shares[1].stripe, 1);
  EXPECT_EQ(table.groups[0].shares[1].begin, kMiB / 2);
  // Without relays it crosses for each of them.
  const ServeTable alone = Serve({0}, wants, {0, 1, 1}, false, false, 1);
  ASSERT_THAT(alone.needs, SizeIs(1));
  EXPECT_TRUE(alone.needs[0].apart);
  ASSERT_THAT(alone.groups[0].shares, SizeIs(1));
  EXPECT_EQ(alone.groups[0].shares[0].end_rank, 2);
}

TEST(ServeTest, MoreNodesThanHoldersAreServedTogether) {
  const std::vector<int> ranks = {1, 2, 3};
  const std::vector<int> node = {0, 1, 2, 3};
  const ServeTable one = Serve({0}, {{ranks, kMiB, 1}}, node, false, true, 1);
  ASSERT_THAT(one.needs, SizeIs(1));
  EXPECT_FALSE(one.needs[0].apart);
  EXPECT_THAT(one.needs[0].ranks, ElementsAre(1, 2, 3));
  // Where there are as many holders, one by one is no more for any of them.
  const std::vector<int> two_ranks = {2, 3};
  const ServeTable two = Serve({0, 1}, {{two_ranks, kMiB, 1}}, node, false, true, 1);
  ASSERT_THAT(two.needs, SizeIs(1));
  EXPECT_TRUE(two.needs[0].apart);
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
