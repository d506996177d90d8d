// Which tree is chosen, and in what order ranks stand in it.
#include "plan/fanout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kKiB = 1 << 10;
constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kBucketBytes = 8 * kMiB;

TEST(ChooseFanoutTest, OneDestinationNeedsNoTree) {
  for (const int64_t bytes : {int64_t{1}, 100 * kKiB, 100 * kMiB}) {
    for (const int64_t destinations : {0, 1}) {
      const Fanout fanout = ChooseFanout(bytes, destinations, kBucketBytes);
      EXPECT_EQ(fanout.shape, FanoutShape::kStar);
      EXPECT_EQ(fanout.piece_bytes, kBucketBytes);
    }
  }
}

// A few destinations get little at once; many, by a tree; much, by a chain.
TEST(ChooseFanoutTest, EndsOfTheScale) {
  EXPECT_EQ(ChooseFanout(64 * kKiB, 3, kBucketBytes).shape, FanoutShape::kStar);
  EXPECT_EQ(ChooseFanout(64 * kKiB, 64, kBucketBytes).shape, FanoutShape::kTree);
  EXPECT_EQ(ChooseFanout(256 * kKiB, 1000, kBucketBytes).shape, FanoutShape::kTree);
  for (const int64_t destinations : {2, 3, 8, 64}) {
    EXPECT_EQ(ChooseFanout(256 * kMiB, destinations, kBucketBytes).shape, FanoutShape::kChain)
        << destinations;
  }
}

TEST(CoincidingTest, ChainsThatAreNotTooLongInPiecesThatFitABucket) {
  EXPECT_EQ(ChooseCoincidingFanout(kMiB, 2, kBucketBytes).shape, FanoutShape::kChain);
  EXPECT_EQ(ChooseCoincidingFanout(kMiB, 16, kBucketBytes).shape, FanoutShape::kChain);
  EXPECT_EQ(ChooseCoincidingFanout(kMiB, 64, kBucketBytes).shape, FanoutShape::kTree);
  EXPECT_LT(ChooseCoincidingFanout(kMiB, 16, kBucketBytes).piece_bytes, kMiB);
  EXPECT_EQ(ChooseCoincidingFanout(kMiB, 16, 16).piece_bytes, 16);
  // Never in smaller pieces than a source would choose for itself.
  for (int64_t destinations = 2; destinations <= 32; ++destinations) {
    for (int64_t bytes = kKiB; bytes <= 64 * kMiB; bytes *= 2) {
      const Fanout alone = ChooseFanout(bytes, destinations, kBucketBytes);
      if (alone.shape != FanoutShape::kChain) continue;
      EXPECT_GE(ChooseCoincidingFanout(bytes, destinations, kBucketBytes).piece_bytes,
                alone.piece_bytes);
    }
  }
}

TEST(CoincidingTest, WithFewSlotsForTheDestinations) {
  EXPECT_FALSE(TreesCoincide(0, 64));
  EXPECT_TRUE(TreesCoincide(1, 2));
  EXPECT_TRUE(TreesCoincide(16, 16));
  EXPECT_FALSE(TreesCoincide(16, 2));
  EXPECT_FALSE(TreesCoincide(1 << 20, 64));
  for (const int64_t slots : {0, 1, 8}) {
    EXPECT_FALSE(TreesCoincide(slots, 0)) << slots;  // there is no tree
    EXPECT_FALSE(TreesCoincide(slots, 1)) << slots;
  }
}

// With more destinations the source is relieved more.
TEST(ChooseFanoutTest, MoreDestinationsNeverGoBackToTheStar) {
  for (int64_t bytes = 64 * kKiB; bytes <= 256 * kMiB; bytes = bytes * 3 / 2) {
    bool star = true;
    for (int64_t destinations = 2; destinations <= 300; ++destinations) {
      const FanoutShape shape = ChooseFanout(bytes, destinations, kBucketBytes).shape;
      EXPECT_TRUE(star || shape != FanoutShape::kStar) << bytes << " to " << destinations;
      star = shape == FanoutShape::kStar;
    }
    EXPECT_FALSE(star) << bytes;
  }
}

// With more bytes the pipeline fills better: no way back from a chain.
TEST(ChooseFanoutTest, MoreBytesNeverLeaveTheChain) {
  for (const int64_t destinations : {2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 64, 100}) {
    bool chain = false;
    for (int64_t bytes = 64 * kKiB; bytes <= 512 * kMiB; bytes = bytes * 9 / 8) {
      const bool is_chain =
          ChooseFanout(bytes, destinations, kBucketBytes).shape == FanoutShape::kChain;
      EXPECT_TRUE(is_chain || !chain) << bytes << " to " << destinations;
      chain = is_chain;
    }
    EXPECT_TRUE(chain) << destinations;
  }
}

TEST(ChooseFanoutTest, PiecesFitABucketAndGrowWithTheBytes) {
  for (const int64_t bucket_bytes : {int64_t{16}, 30 * kKiB, kMiB, kBucketBytes, 1024 * kMiB}) {
    for (const int64_t destinations : {2, 5, 20}) {
      int64_t before = 0;
      for (int64_t bytes = kMiB; bytes <= 512 * kMiB; bytes *= 2) {
        const Fanout fanout = ChooseFanout(bytes, destinations, bucket_bytes);
        EXPECT_GT(fanout.piece_bytes, 0);
        EXPECT_LE(fanout.piece_bytes, bucket_bytes);
        if (fanout.shape != FanoutShape::kChain) continue;
        EXPECT_GE(fanout.piece_bytes, before);
        EXPECT_GE(fanout.piece_bytes, std::min(bucket_bytes, 128 * kKiB));
        before = fanout.piece_bytes;
      }
    }
  }
}

std::vector<FanoutPlace> Tree(int src, absl::Span<const int> ranks, FanoutShape shape,
                              size_t first_node, size_t stripe, absl::Span<const int> nodes) {
  return FanoutTree(src, RanksByNode(ranks, nodes), shape, first_node, stripe, nodes);
}

TEST(RanksByNodeTest, NodesComeInTheOrderOfTheirFirstRanks) {
  const std::vector<int> nodes = {9, 4, 9, 4, 6, 4};
  const std::vector<int> all = {0, 1, 2, 3, 4, 5};
  const RanksByNode mixed(all, nodes);
  ASSERT_EQ(mixed.nodes(), 3u);
  EXPECT_THAT(mixed.of(0), ElementsAre(0, 2));
  EXPECT_THAT(mixed.of(1), ElementsAre(1, 3, 5));
  EXPECT_THAT(mixed.of(2), ElementsAre(4));
  EXPECT_THAT(mixed.of(1, 3), ElementsAre(1, 3, 5, 4));
  EXPECT_EQ(mixed.largest(0, 3), 3u);
  const std::vector<int> apart = {3, 4, 2};
  const RanksByNode alone(apart, nodes);
  ASSERT_EQ(alone.nodes(), 3u);
  EXPECT_THAT(alone.of(0), ElementsAre(3));
  EXPECT_THAT(alone.of(1, 3), ElementsAre(4, 2));
  EXPECT_EQ(alone.largest(0, 3), 1u);
  EXPECT_EQ(RanksByNode({}, nodes).nodes(), 0u);
}

TEST(FanoutTreeTest, WithoutNodesRanksFollowOneAnother) {
  const std::vector<int> nodes = {0, 1, 2, 3, 4, 5};
  EXPECT_THAT(Tree(0, {1, 2, 3}, FanoutShape::kChain, 0, 0, nodes),
              ElementsAre(FanoutPlace{1, 0}, FanoutPlace{2, 1}, FanoutPlace{3, 2}));
  EXPECT_THAT(Tree(0, {1, 2, 3}, FanoutShape::kStar, 2, 0, nodes),
              ElementsAre(FanoutPlace{3, 0}, FanoutPlace{1, 0}, FanoutPlace{2, 0}));
}

TEST(FanoutTreeTest, OneRankOfANodeHandsOnToTheOthers) {
  const std::vector<int> nodes = {0, 0, 1, 1, 1, 2, 2};
  EXPECT_THAT(Tree(0, {2, 3, 4}, FanoutShape::kStar, 0, 1, nodes),
              ElementsAre(FanoutPlace{3, 0}, FanoutPlace{4, 1}, FanoutPlace{2, 1}));
  // The source's own node has it from the source.
  EXPECT_THAT(Tree(0, {1, 2, 3, 4, 5, 6}, FanoutShape::kChain, 2, 1, nodes),
              ElementsAre(FanoutPlace{6, 0}, FanoutPlace{5, 1}, FanoutPlace{3, 1},
                          FanoutPlace{4, 3}, FanoutPlace{2, 3}, FanoutPlace{1, 0}));
}

TEST(FanoutTreeTest, RandomOnes) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    oracle::Dice dice(seed);
    std::vector<int> ranks;
    std::vector<int> nodes;
    const int64_t nodes_max = dice.Between(1, 6);
    for (int rank = 0; rank < 40; ++rank) {
      nodes.push_back(static_cast<int>(dice.Between(0, nodes_max) * 3));
      if (rank > 0 && (dice.Chance(50) || rank == 1)) ranks.push_back(rank);
    }
    dice.Shuffle(&ranks);
    const auto shape =
        dice.Pick<FanoutShape>({FanoutShape::kStar, FanoutShape::kChain, FanoutShape::kTree});
    const std::vector<FanoutPlace> tree =
        Tree(0, ranks, shape, static_cast<size_t>(dice.Between(0, 9)),
             static_cast<size_t>(dice.Between(0, 9)), nodes);
    const auto node_at = [&](int32_t place) {
      const int rank = place == 0 ? 0 : tree[static_cast<size_t>(place) - 1].rank;
      return nodes[static_cast<size_t>(rank)];
    };
    std::vector<int> in_tree;
    std::set<int> reached = {nodes[0]};
    for (int32_t place = 1; place <= static_cast<int32_t>(tree.size()); ++place) {
      const FanoutPlace& at = tree[static_cast<size_t>(place) - 1];
      in_tree.push_back(at.rank);
      ASSERT_LT(at.parent, place) << "seed " << seed;
      if (node_at(at.parent) == node_at(place)) continue;
      EXPECT_TRUE(reached.insert(node_at(place)).second) << "seed " << seed << ": a node twice";
    }
    EXPECT_TRUE(std::is_permutation(in_tree.begin(), in_tree.end(), ranks.begin(), ranks.end()));
  }
}

}  // namespace
}  // namespace sluice
