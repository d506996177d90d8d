// Orders of epochs in which blocks of items are shuffled, and how even they are.
#include "plan/shard/epoch_order.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "plan/shard/permutation.h"

namespace sluice {
namespace {

std::vector<int64_t> OrderOf(const EpochOrder& order, int64_t epoch) {
  std::vector<int64_t> items;
  for (int64_t place = 0; place < order.items(); ++place) {
    items.push_back(order.ItemAt(epoch, place));
  }
  return items;
}

TEST(PermutationTest, PlacesAndValuesAreInverse) {
  for (const int64_t values : {1, 2, 3, 5, 16, 17, 1000}) {
    const Permutation permutation(values);
    for (int64_t place = 0; place < values; ++place) {
      for (const uint64_t key : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
        const int64_t value = permutation.At(place, key);
        ASSERT_GE(value, 0);
        ASSERT_LT(value, values);
        ASSERT_EQ(permutation.PlaceOf(value, key), place) << values;
      }
    }
  }
}

TEST(BlockOrderTest, EachItemComesOnceInEachEpoch) {
  for (const int64_t items : {1, 2, 7, 63, 64, 65, 100, 1000, 4097}) {
    for (const int64_t block : {int64_t{1}, int64_t{2}, int64_t{7}, int64_t{64}, int64_t{1000},
                                int64_t{5000}, INT64_MAX}) {
      const EpochOrder order(items, true, 11, block);
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        std::vector<int64_t> seen = OrderOf(order, epoch);
        std::sort(seen.begin(), seen.end());
        for (int64_t i = 0; i < items; ++i) {
          ASSERT_EQ(seen[static_cast<size_t>(i)], i) << items << " in blocks of " << block;
        }
      }
    }
  }
}

TEST(BlockOrderTest, BlocksOfOneAreItemsSingly) {
  EXPECT_EQ(OrderOf(EpochOrder(1000, true, 5, 1), 3), OrderOf(EpochOrder(1000, true, 5), 3));
}

// What comes between two turns of BlockAt are all items of one block of neighbours.
TEST(BlockOrderTest, NeighboursComeTogether) {
  for (const int64_t items : {96, 100, 97}) {
    constexpr int64_t kBlock = 8;
    const EpochOrder order(items, true, 3, kBlock);
    EXPECT_EQ(order.blocks(), (items + kBlock - 1) / kBlock);
    int64_t turn = -1;
    std::set<int64_t> blocks;
    std::vector<int64_t> inside;
    const auto end_block = [&] {
      if (turn < 0) return;
      std::sort(inside.begin(), inside.end());
      const int64_t first = inside.front() / kBlock * kBlock;
      ASSERT_EQ(inside.front(), first);
      ASSERT_EQ(inside.back(), std::min(first + kBlock, items) - 1);
      ASSERT_TRUE(blocks.insert(first).second);
      inside.clear();
    };
    for (int64_t place = 0; place < items; ++place) {
      const int64_t now = order.BlockAt(1, place);
      if (now != turn) {
        ASSERT_EQ(now, turn + 1);
        end_block();
        turn = now;
      }
      inside.push_back(order.ItemAt(1, place));
    }
    end_block();
    EXPECT_EQ(static_cast<int64_t>(blocks.size()), order.blocks());
  }
}

TEST(BlockOrderTest, SeedsAndEpochsHaveOrdersOfTheirOwn) {
  const std::vector<int64_t> one = OrderOf(EpochOrder(500, true, 1, 50), 0);
  EXPECT_NE(one, OrderOf(EpochOrder(500, true, 1, 50), 1));
  EXPECT_NE(one, OrderOf(EpochOrder(500, true, 2, 50), 0));
  EXPECT_NE(one, OrderOf(EpochOrder(500, true, 1, 49), 0));
  EXPECT_EQ(one, OrderOf(EpochOrder(500, true, 1, 50), 0));
}

// Pearson's statistic of how often each item came at each place, over many seeds.
double ChiSquare(int64_t items, int64_t block, int64_t seeds) {
  std::vector<int64_t> counts(static_cast<size_t>(items * items));
  for (int64_t seed = 0; seed < seeds; ++seed) {
    const EpochOrder order(items, true, static_cast<uint64_t>(seed), block);
    for (int64_t place = 0; place < items; ++place) {
      ++counts[static_cast<size_t>(place * items + order.ItemAt(0, place))];
    }
  }
  const double expected = static_cast<double>(seeds) / static_cast<double>(items);
  double sum = 0;
  for (const int64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    sum += off * off / expected;
  }
  return sum;
}

// Of permutations that are drawn evenly the statistic is near items * (items - 1), give or take a
// few times sqrt(2) * items; of places that some items never take it is many times as large. Seeds
// are fixed, so the result is the same everywhere.
TEST(BlockOrderTest, EachItemIsAtEachPlaceEquallyOften) {
  constexpr int64_t kItems = 24;
  constexpr double kMean = kItems * (kItems - 1);
  for (const int64_t block : {1, 4, 6, 24}) {
    const double found = ChiSquare(kItems, block, 4000);
    EXPECT_GT(found, 0.6 * kMean) << block;
    EXPECT_LT(found, 1.5 * kMean) << block;
  }
}

}  // namespace
}  // namespace sluice
