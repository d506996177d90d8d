// Positions of a mesh against their parts, replicas and contributions.
#include "mesh/partition.h"

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/brute_layout.h"
#include "oracle/make_layout.h"
#include "oracle/random_layout.h"
#include "sluice/layout.h"

namespace sluice {
namespace {

using oracle::Dice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A random layout with contributions, over the ranks 0, 1, ..
Layout RandomLayout(Dice* dice, int dims) {
  Layout layout = oracle::RandomLayout(dice, oracle::RankRange(0, 60), dims);
  for (Placement& placement : layout.placements) {
    if (dice->Chance(40)) {
      placement = Placement::Partial(dice->Pick<ReduceOp>({ReduceOp::kSum, ReduceOp::kMin}));
    }
  }
  return layout;
}

TEST(PartitionTest, PositionsAreTheirNumbers) {
  int deep = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Dice dice(seed);
    const auto dims = static_cast<int>(dice.Between(1, 8));
    const Layout layout = RandomLayout(&dice, dims);
    const Partition partition(layout, dims);
    SCOPED_TRACE(oracle::Describe(layout, {}));
    deep += partition.levels().size() > 1 ? 1 : 0;
    std::set<std::tuple<PartTuple, int64_t, int64_t>> seen;
    for (size_t i = 0; i < layout.mesh.ranks().size(); ++i) {
      const auto position = static_cast<int64_t>(i);
      const PartTuple parts = partition.PartsOf(position);
      const int64_t replica = partition.ReplicaOf(position);
      const int64_t contribution = partition.ContributionOf(position);
      ASSERT_TRUE(0 <= replica && replica < partition.replicas());
      ASSERT_TRUE(0 <= contribution && contribution < partition.contributions());
      ASSERT_TRUE(seen.emplace(parts, replica, contribution).second);
      ASSERT_EQ(partition.PositionOf(parts, replica, contribution), position);
    }
  }
  EXPECT_GT(deep, 100);
}

// The first Partial dimension is reduced first: along it, contributions follow one another, in the
// order of its coordinates; and so on. Neighbours with the same op count as in the mesh.
TEST(PartitionTest, ContributionsCountTheFirstLevelFastest) {
  int joined = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Dice dice(seed);
    const Layout layout = RandomLayout(&dice, 2);
    const Partition partition(layout, 2);
    SCOPED_TRACE(oracle::Describe(layout, {}));
    std::vector<Level> levels;
    std::vector<std::vector<size_t>> dims;  // of each level
    for (size_t m = 0; m < layout.placements.size(); ++m) {
      const int64_t size = layout.mesh.sizes()[m];
      const Placement& placement = layout.placements[m];
      if (placement.kind != Placement::Kind::kPartial || size == 1) continue;
      if (!levels.empty() && levels.back().op == placement.op) {
        levels.back().size *= size;
        dims.back().push_back(m);
        ++joined;
      } else {
        levels.push_back({size, placement.op});
        dims.push_back({m});
      }
    }
    ASSERT_THAT(partition.levels(), ::testing::ElementsAreArray(levels));
    for (size_t i = 0; i < layout.mesh.ranks().size(); ++i) {
      const auto coordinates = *oracle::Coordinates(layout.mesh, layout.mesh.ranks()[i]);
      int64_t expected = 0;
      int64_t stride = 1;
      for (size_t level = 0; level < levels.size(); ++level) {
        int64_t number = 0;
        for (const size_t m : dims[level]) {
          number = number * layout.mesh.sizes()[m] + coordinates[m];
        }
        expected += number * stride;
        stride *= levels[level].size;
      }
      ASSERT_EQ(partition.ContributionOf(static_cast<int64_t>(i)), expected);
      ASSERT_EQ(partition.contributions(), stride);
    }
  }
  EXPECT_GT(joined, 100);
}

TEST(PartitionTest, AveragesAndProductsStayApart) {
  const auto mesh = Mesh::Create({2, 3}, {0, 1, 2, 3, 4, 5}).value();
  for (const ReduceOp op : {ReduceOp::kAvg, ReduceOp::kProduct}) {
    const Partition partition({mesh, {Placement::Partial(op), Placement::Partial(op)}}, 1);
    EXPECT_THAT(partition.levels(), ElementsAre(Level{2, op}, Level{3, op}));
    EXPECT_EQ(partition.PositionOf({}, 0, 1), 3);
  }
}

TEST(PartitionTest, ReplicasAndContributionsAreApart) {
  const auto mesh = Mesh::Create({2, 3, 1}, {0, 1, 2, 3, 4, 5}).value();
  const Placement sum = Placement::Partial(ReduceOp::kSum);
  const Partition partition({mesh, {Placement::Replicate(), sum, sum}}, 1);
  EXPECT_EQ(partition.replicas(), 2);
  EXPECT_EQ(partition.contributions(), 3);
  EXPECT_THAT(partition.levels(), ElementsAre(Level{3, ReduceOp::kSum}));
  EXPECT_EQ(partition.PositionOf({}, 1, 2), 5);
  EXPECT_THAT(partition.cuts(0), IsEmpty());
}

}  // namespace
}  // namespace sluice
