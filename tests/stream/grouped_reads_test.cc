// Which reads of a group wait for which, and in what order they go.
#include "session/shard/grouped_reads.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kNothingOlder = -1;

ReadOrder Order(int object, int64_t offset) {
  return {.slot = static_cast<int>(offset / 10), .object = object, .offset = offset, .bytes = 10};
}

// Offsets of what goes; negative where it may join what is before it.
std::vector<int64_t> Go(GroupedReads* reads, int64_t oldest) {
  std::vector<int64_t> offsets;
  for (const ReadOrder& order : reads->Take(oldest)) {
    offsets.push_back(order.may_join ? -order.offset : order.offset);
  }
  return offsets;
}

TEST(GroupedReadsTest, AGroupGoesAsAWholeInTheOrderOfStorage) {
  GroupedReads reads(100);
  for (int i = 0; i < 3; ++i) reads.Announce(4, true);
  reads.Add(4, Order(0, 30));
  reads.Add(4, Order(0, 10));
  reads.Announce(5, true);
  EXPECT_THAT(Go(&reads, kNothingOlder), IsEmpty());
  reads.Add(4, Order(0, 20));
  EXPECT_THAT(Go(&reads, kNothingOlder), ElementsAre(10, -20, -30));
  EXPECT_TRUE(reads.empty());
}

TEST(GroupedReadsTest, AGroupThatMayGrowWaits) {
  GroupedReads reads(100);
  reads.Announce(0, true);
  reads.Add(0, Order(0, 10));
  EXPECT_THAT(Go(&reads, kNothingOlder), IsEmpty());
  reads.AnnounceEnd();
  EXPECT_THAT(Go(&reads, kNothingOlder), ElementsAre(10));
}

TEST(GroupedReadsTest, PiecesThatOthersReadAreNotWaitedFor) {
  GroupedReads reads(100);
  reads.Announce(0, true);
  reads.Announce(0, false);
  reads.Announce(1, false);
  reads.Add(0, Order(0, 10));
  EXPECT_THAT(Go(&reads, kNothingOlder), ElementsAre(10));
}

// Otherwise nobody would ever make room for the rest of the group.
TEST(GroupedReadsTest, WhatTheSmallestBucketNeedsGoesAtOnce) {
  GroupedReads reads(100);
  for (int i = 0; i < 3; ++i) reads.Announce(7, true);
  reads.Announce(8, true);
  reads.Announce(9, true);
  reads.Add(7, Order(0, 50));
  reads.Add(8, Order(0, 80));
  EXPECT_THAT(Go(&reads, 6), ElementsAre(80)) << "it is whole, whatever comes before it";
  EXPECT_THAT(Go(&reads, 7), ElementsAre(50));
  reads.Add(7, Order(0, 20));
  EXPECT_THAT(Go(&reads, 7), ElementsAre(20));
}

TEST(GroupedReadsTest, NoMoreThanHalfOfTheSlotsWait) {
  GroupedReads reads(4);
  for (int i = 0; i < 9; ++i) reads.Announce(1, true);
  reads.Add(1, Order(0, 70));
  EXPECT_THAT(Go(&reads, 0), IsEmpty());
  reads.Add(1, Order(0, 60));
  EXPECT_THAT(Go(&reads, 0), ElementsAre(60, -70));
}

TEST(GroupedReadsTest, OnlyNeighboursJoin) {
  GroupedReads reads(100);
  for (int i = 0; i < 4; ++i) reads.Announce(0, true);
  reads.Announce(1, true);
  reads.Add(0, Order(1, 20));
  reads.Add(0, Order(0, 10));
  reads.Add(0, Order(1, 40));
  reads.Add(0, Order(1, 30));
  EXPECT_THAT(Go(&reads, kNothingOlder), ElementsAre(10, 20, -30, -40));
}

TEST(GroupedReadsTest, GroupsGoOneAfterTheOther) {
  GroupedReads reads(2);
  reads.Announce(0, true);
  reads.Announce(1, true);
  reads.Add(1, Order(0, 10));
  reads.Add(0, Order(0, 20));
  EXPECT_THAT(Go(&reads, kNothingOlder), ElementsAre(20, 10));
}

}  // namespace
}  // namespace sluice
