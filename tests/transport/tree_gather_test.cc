// All-gathers in few messages: what they bring, in how many messages, in whatever order.
#include "transport/tree_gather.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "oracle/sampled.h"
#include "sluice/fabric.h"
#include "transport/tree_world.h"

namespace sluice {
namespace {

int Digits(int size) {
  int digits = 0;
  for (int64_t unit = 1; unit < size; unit *= TreeGather::kRadix) ++digits;
  return digits;
}

void GatherOnce(TreeWorld& world, int gather, size_t bytes) {
  const std::vector<int> ranks = RanksBut(world.size(), {});
  for (const int rank : ranks) world.Start(rank, TreeRecord(rank, gather, bytes));
  ASSERT_TRUE(world.Settle(ranks).ok());
  const std::vector<std::byte> expected = TreeRecords(world.size(), gather, bytes);
  for (const int rank : ranks) {
    ASSERT_FALSE(world.is_under_way(rank)) << rank << " of " << world.size();
    ASSERT_EQ(world.all(rank), expected) << rank << " of " << world.size();
  }
}

TEST(TreeGatherTest, SendsFewMessagesInJobsOfAllSizes) {
  for (int size = 1; size <= 600; size += size < 100 || oracle::IsThorough() ? 1 : 7) {
    TreeWorld world(size);
    GatherOnce(world, 0, 1);
    if (testing::Test::HasFatalFailure()) return;
    for (int rank = 0; rank < size; ++rank) {
      ASSERT_LE(world.sent(rank), (TreeGather::kRadix - 1) * Digits(size)) << size;
      ASSERT_EQ(world.sent(rank), world.needed(rank));
      ASSERT_EQ(world.untaken(rank), 0u);
    }
  }
}

TEST(TreeGatherTest, SendsFewMessagesInALargeJob) {
  TreeWorld world(4096);
  GatherOnce(world, 0, 2);
  for (int rank = 0; rank < world.size(); ++rank) ASSERT_EQ(world.sent(rank), 28);
}

TEST(TreeGatherTest, SmallJobsSendDirectly) {
  for (int size = 1; size <= TreeGather::kRadix + 1; ++size) {
    TreeWorld world(size);
    GatherOnce(world, 0, 8);
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(world.sent(rank), size - 1);
  }
}

TEST(TreeGatherTest, GathersRecordsOfAllLengthsAgainAndAgain) {
  for (const int size : {1, 2, 5, 9, 10, 17, 40}) {
    TreeWorld world(size);
    int gather = 0;
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100}, Fabric::kMaxRecordBytes}) {
      for (int i = 0; i < 3; ++i) GatherOnce(world, gather++, bytes);
    }
  }
}

// Ranks poll one message at a time in a random order, and begin the next gather at once.
TEST(TreeGatherTest, RanksMayBeOneGatherAhead) {
  constexpr int kGathers = 12;
  int ahead = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const int size = 1 + static_cast<int>(random() % 80);
    TreeWorld::Options options;
    options.seed = seed;
    options.one_each = seed % 2 == 0;
    TreeWorld world(size, options);
    std::vector<int> gathers(static_cast<size_t>(size));  // that each rank has begun
    int ended = 0;
    while (ended < size * kGathers) {
      const int rank = static_cast<int>(random() % static_cast<uint32_t>(size));
      int& own = gathers[static_cast<size_t>(rank)];
      if (!world.is_under_way(rank)) {
        if (own == kGathers) {
          ASSERT_TRUE(world.Poll(rank, 1).ok());  // takes what comes late
          continue;
        }
        world.Start(rank, TreeRecord(rank, ++own, 5));
        for (const int other : gathers) ahead += other < own ? 1 : 0;
      }
      const absl::StatusOr<bool> complete = world.Poll(rank, 1);
      ASSERT_TRUE(complete.ok()) << complete.status();
      if (!*complete) continue;
      ++ended;
      ASSERT_EQ(world.all(rank), TreeRecords(size, own, 5));
      ASSERT_TRUE(world.missing(rank).empty());
    }
  }
  EXPECT_GT(ahead, 100);  // or this tests nothing
}

// Nobody waits for a rank that has its result and calls nothing any more.
TEST(TreeGatherTest, NobodyNeedsARankThatIsThrough) {
  for (const int size : {2, 9, 30, 100}) {
    for (uint32_t seed = 0; seed < 10; ++seed) {
      std::mt19937 random(seed);
      TreeWorld world(size);
      for (int rank = 0; rank < size; ++rank) world.Start(rank, TreeRecord(rank, 0, 3));
      int ended = 0;
      for (int64_t polls = 0; ended < size; ++polls) {
        ASSERT_LT(polls, 10'000'000);
        const int rank = static_cast<int>(random() % static_cast<uint32_t>(size));
        if (world.is_under_way(rank) && world.Poll(rank, 1).value()) ++ended;
      }
    }
  }
}

TEST(TreeGatherTest, CutsMessagesToTheirLimit) {
  for (const int size : {2, 9, 20, 100}) {
    TreeWorld::Options options;
    options.max_message_bytes = TreeGather::MinMessageBytes(size) + 3000;
    TreeWorld world(size, options);
    GatherOnce(world, 0, Fabric::kMaxRecordBytes);
    GatherOnce(world, 1, 700);
    EXPECT_LE(world.longest_message(), options.max_message_bytes);
    EXPECT_GT(world.longest_message(), size < 20 ? 0u : Fabric::kMaxRecordBytes);
  }
}

TEST(TreeGatherTest, AllRanksLearnOfARecordOfAnotherLength) {
  for (const int size : {2, 3, 9, 10, 33, 100}) {
    for (const int odd : {0, 1, size / 2, size - 1}) {
      TreeWorld world(size);
      const std::vector<int> ranks = RanksBut(size, {});
      for (const int rank : ranks) world.Start(rank, TreeRecord(rank, 0, rank == odd ? 12 : 16));
      int errors = 0;
      for (int round = 0; round < 100 && errors < size; ++round) {
        for (const int rank : ranks) {
          if (!world.is_under_way(rank)) continue;
          const absl::StatusOr<bool> complete = world.Poll(rank);
          if (complete.ok()) {
            EXPECT_FALSE(*complete);
            continue;
          }
          ++errors;
          EXPECT_THAT(complete.status(),
                      Fails(absl::StatusCode::kDataLoss, absl::StrCat("rank ", odd, " has 12")));
        }
      }
      EXPECT_EQ(errors, size);
    }
  }
}

TEST(TreeGatherTest, AllRecordsMayHaveOtherLengths) {
  TreeWorld::Options options;
  options.max_message_bytes = TreeGather::MinMessageBytes(50);
  TreeWorld world(50, options);
  const std::vector<int> ranks = RanksBut(50, {});
  for (const int rank : ranks) {
    world.Start(rank, TreeRecord(rank, 0, static_cast<size_t>(rank) * 40));
  }
  const absl::Status status = world.Settle(ranks);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  for (const int rank : ranks) EXPECT_FALSE(world.is_under_way(rank));
}

}  // namespace
}  // namespace sluice
