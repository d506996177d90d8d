// Who is named while an all-gather does not end, after how long, and what this costs.
#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "transport/tree_gather.h"
#include "transport/tree_world.h"

namespace sluice {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kTickNs = 50 * kMs;

// All of `ranks` poll, several times at each moment, until so much time has gone by.
void RunFor(TreeWorld& world, const std::vector<int>& ranks, int64_t duration_ns) {
  for (int64_t end = world.now_ns + duration_ns; world.now_ns < end; world.now_ns += kTickNs) {
    ASSERT_TRUE(world.Settle(ranks).ok());
  }
}

// Sets of ranks that might be late in a job of this size.
std::vector<std::vector<int>> SilentSets(int size, std::mt19937& random) {
  std::vector<std::vector<int>> sets = {{0}, {size - 1}, {size / 2}};
  const auto pick = [&](int count) {
    std::vector<int> ranks = RanksBut(size, {});
    std::shuffle(ranks.begin(), ranks.end(), random);
    ranks.resize(static_cast<size_t>(std::min(count, size - 1)));
    std::sort(ranks.begin(), ranks.end());
    sets.push_back(std::move(ranks));
  };
  for (const int count : {2, size / 3, size / 2, size - 4, size - 2, size - 1}) {
    if (count > 0) pick(count);
  }
  std::vector<int> node;  // of eight, and one of every eighth
  std::vector<int> column;
  for (int rank = 0; rank < size; ++rank) {
    if (rank >= 8 && rank < 16) node.push_back(rank);
    if (rank % 8 == 3) column.push_back(rank);
  }
  if (!node.empty()) sets.push_back(node);
  if (!column.empty()) sets.push_back(column);
  return sets;
}

TEST(TreeGatherSilenceTest, NamesExactlyTheRanksThatHaveNotStarted) {
  std::mt19937 random(7);
  for (const int size : {2, 3, 5, 9, 10, 12, 16, 20, 33, 64, 65, 100, 300}) {
    if (size > 100 && !oracle::IsThorough()) break;
    for (const std::vector<int>& silent : SilentSets(size, random)) {
      const std::vector<int> started = RanksBut(size, silent);
      TreeWorld world(size);
      for (const int rank : started) world.Start(rank, TreeRecord(rank, 0, 8));
      RunFor(world, started, TreeGather::kPatienceNs + 1000 * kMs);
      for (const int rank : started) {
        ASSERT_TRUE(world.is_under_way(rank));
        ASSERT_EQ(world.missing(rank), silent) << rank << " of " << size;
      }
      RunFor(world, started, 20'000 * kMs);
      for (const int rank : started) ASSERT_EQ(world.missing(rank), silent) << rank;
      // And then they come.
      for (const int rank : silent) world.Start(rank, TreeRecord(rank, 0, 8));
      ASSERT_TRUE(world.Settle(RanksBut(size, {})).ok());
      for (int rank = 0; rank < size; ++rank) {
        ASSERT_FALSE(world.is_under_way(rank)) << rank << " of " << size;
        ASSERT_EQ(world.all(rank), TreeRecords(size, 0, 8));
      }
    }
  }
}

// Ranks come one after the other; whoever has come knows who has not.
TEST(TreeGatherSilenceTest, NamesWhoIsLeftWhileOthersCome) {
  std::mt19937 random(3);
  for (const int size : {6, 17, 40, 130}) {
    std::vector<int> order = RanksBut(size, {});
    std::shuffle(order.begin(), order.end(), random);
    TreeWorld world(size);
    std::vector<int> started;
    for (const int rank : order) {
      world.Start(rank, TreeRecord(rank, 0, 8));
      started.push_back(rank);
      RunFor(world, started, 1500 * kMs);
      if (static_cast<int>(started.size()) == size) break;
      // What is known of the last one to come is as old as a few beats.
      std::vector<int> sorted = started;
      std::sort(sorted.begin(), sorted.end());
      for (const int other : started) {
        for (const int missing : world.missing(other)) {
          EXPECT_TRUE(missing == rank || !std::binary_search(sorted.begin(), sorted.end(), missing))
              << missing << " has started long ago, says " << other << " of " << size;
        }
      }
      EXPECT_EQ(world.missing(rank), RanksBut(size, sorted));
    }
    for (int rank = 0; rank < size; ++rank) EXPECT_FALSE(world.is_under_way(rank));
  }
}

// One rank of many is ten minutes late: nobody sends many messages for this.
TEST(TreeGatherSilenceTest, ALateRankCostsFewMessages) {
  constexpr int kSize = 512;
  const std::vector<int> started = RanksBut(kSize, {100});
  TreeWorld world(kSize);
  for (const int rank : started) world.Start(rank, TreeRecord(rank, 0, 8));
  RunFor(world, started, 10'000 * kMs);
  for (const int rank : started) EXPECT_LE(world.sent(rank), 300);
  for (; world.now_ns < 1'000'000'000'000 + 600'000 * kMs; world.now_ns += 2000 * kMs) {
    ASSERT_TRUE(world.Settle(started).ok());
  }
  for (const int rank : started) EXPECT_LE(world.sent(rank), 1000);
  // One message of each that has it as a neighbour, or has looked for a next rank there.
  EXPECT_LE(world.untaken(100), 60u);
}

// A rank that is alone asks each other one once.
TEST(TreeGatherSilenceTest, AFirstRankSendsOneMessageToEachOther) {
  constexpr int kSize = 200;
  TreeWorld world(kSize);
  world.Start(5, TreeRecord(5, 0, 8));
  RunFor(world, {5}, 60'000 * kMs);
  EXPECT_LE(world.sent(5), kSize);
  for (int rank = 0; rank < kSize; ++rank) EXPECT_LE(world.untaken(rank), 1u);
}

// A rank stops anywhere in gathers that follow one another. The others' gathers end or not, but in
// the end each names this rank alone.
TEST(TreeGatherSilenceTest, NamesARankThatStopsAnywhere) {
  int stopped_inside = 0;
  for (uint32_t seed = 0; seed < static_cast<uint32_t>(oracle::Thinned(150)); ++seed) {
    std::mt19937 random(seed);
    const int size = 2 + static_cast<int>(random() % 100);
    TreeWorld::Options options;
    options.seed = seed;
    TreeWorld world(size, options);
    std::vector<int> gathers(static_cast<size_t>(size));
    const auto work = [&](int rank, int limit) {
      int& own = gathers[static_cast<size_t>(rank)];
      if (!world.is_under_way(rank)) world.Start(rank, TreeRecord(rank, ++own, 4));
      ASSERT_TRUE(world.Poll(rank, limit).ok());
    };
    const int steps = static_cast<int>(random() % 100'000) / (1 + static_cast<int>(seed % 3) * 50);
    for (int step = 0; step < steps; ++step) {
      work(static_cast<int>(random() % static_cast<uint32_t>(size)), 1);
    }
    const int stopped = static_cast<int>(random() % static_cast<uint32_t>(size));
    if (world.is_under_way(stopped)) ++stopped_inside;
    const std::vector<int> others = RanksBut(size, {stopped});
    for (int64_t end = world.now_ns + 20'000 * kMs; world.now_ns < end; world.now_ns += kTickNs) {
      for (const int rank : others) work(rank, 1 << 30);
      for (const int rank : others) work(rank, 1 << 30);
    }
    for (const int rank : others) {
      if (!world.is_under_way(rank)) continue;  // between two
      EXPECT_EQ(world.missing(rank), std::vector<int>{stopped})
          << rank << " of " << size << " in gather " << gathers[static_cast<size_t>(rank)]
          << ", the stopped one in " << gathers[static_cast<size_t>(stopped)] << ", seed " << seed;
    }
  }
  EXPECT_GT(stopped_inside, oracle::Thinned(50));
}

// Ranks that look once in three seconds are slow, but it is another one that is named.
TEST(TreeGatherSilenceTest, RanksThatLookSeldomAreNotSilent) {
  constexpr int kSize = 30;
  const std::vector<int> started = RanksBut(kSize, {11});
  TreeWorld world(kSize);
  for (const int rank : started) world.Start(rank, TreeRecord(rank, 0, 8));
  for (int tick = 0; tick < 1200; ++tick, world.now_ns += kTickNs) {
    for (const int rank : started) {
      if (rank % 2 != 0 && (tick + rank) % 60 != 0) continue;
      ASSERT_TRUE(world.Poll(rank).ok());
    }
  }
  for (const int rank : started) {
    ASSERT_TRUE(world.Poll(rank).ok());
    EXPECT_EQ(world.missing(rank), std::vector<int>{11}) << rank;
  }
}

TEST(TreeGatherSilenceTest, SomeRankIsAlwaysNamed) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const int size = 2 + static_cast<int>(random() % 40);
    TreeWorld world(size);
    int ended = 0;
    std::vector<uint8_t> has_started(static_cast<size_t>(size));
    while (ended < size) {
      const int rank = static_cast<int>(random() % static_cast<uint32_t>(size));
      if (std::exchange(has_started[static_cast<size_t>(rank)], uint8_t{1}) == 0) {
        world.Start(rank, TreeRecord(rank, 0, 4));
      }
      world.now_ns += static_cast<int64_t>(random() % 20) * kMs;
      if (!world.is_under_way(rank)) continue;
      const absl::StatusOr<bool> complete = world.Poll(rank, 1);
      ASSERT_TRUE(complete.ok());
      EXPECT_EQ(*complete, world.missing(rank).empty());
      EXPECT_TRUE(std::is_sorted(world.missing(rank).begin(), world.missing(rank).end()));
      EXPECT_THAT(world.missing(rank), testing::Not(testing::Contains(rank)));
      if (*complete) ++ended;
    }
  }
}

}  // namespace
}  // namespace sluice
