// What a simulated rank has beside its gate, and how the members of a reduction meet.
#include "deadlock/rank_resources.h"

#include <cstddef>
#include <optional>
#include <vector>

#include "deadlock/exchanges.h"
#include "deadlock/job.h"
#include "deadlock/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::deadlock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FirstFitArenaTest, FragmentsAndJoins) {
  FirstFitArena arena(32);
  EXPECT_EQ(arena.Take(12), 0);
  EXPECT_EQ(arena.Take(8), 12);
  EXPECT_EQ(arena.Take(12), 20);
  EXPECT_EQ(arena.Take(1), std::nullopt);
  arena.Give(0);
  arena.Give(20);
  EXPECT_EQ(arena.Take(16), std::nullopt);  // 24 are free, in two pieces
  arena.Give(12);
  EXPECT_EQ(arena.Take(32), 0);
}

TEST(LaunchStreamTest, LaunchesInOrderOneAtATime) {
  LaunchStream stream({3, 5}, true);
  stream.Ready(5);
  EXPECT_THAT(stream.Launch(), IsEmpty());
  stream.Ready(3);
  EXPECT_THAT(stream.Launch(), ElementsAre(3));
  EXPECT_THAT(stream.Launch(), IsEmpty());
  stream.Ended();
  EXPECT_THAT(stream.Launch(), ElementsAre(5));
}

TEST(LaunchStreamTest, LaunchesWhatIsReadyAsAGroup) {
  LaunchStream stream({3, 5, 7}, false);
  stream.Ready(7);
  stream.Ready(5);
  EXPECT_THAT(stream.Launch(), ElementsAre(5, 7));
  stream.Ready(3);
  stream.Ended();
  EXPECT_THAT(stream.Launch(), IsEmpty());
  stream.Ended();
  EXPECT_THAT(stream.Launch(), ElementsAre(3));
}

TEST(DeviceSlotsTest, GrantsInDeliveryOrder) {
  DeviceSlots slots(1, {0, 1}, true);
  slots.Ask(1);
  EXPECT_EQ(slots.Grant(), std::nullopt);
  slots.Ask(0);
  EXPECT_EQ(slots.Grant(), 0u);
  EXPECT_EQ(slots.Grant(), std::nullopt);
  slots.Filled(0);
  ASSERT_TRUE(slots.CanTake());
  slots.Take();
  EXPECT_EQ(slots.Grant(), 1u);
}

TEST(DeviceSlotsTest, GrantsToWhoeverAsks) {
  DeviceSlots slots(1, {0, 1}, false);
  slots.Ask(1);
  EXPECT_EQ(slots.Grant(), 1u);
  slots.Filled(1);
  slots.Ask(0);
  EXPECT_EQ(slots.Grant(), std::nullopt);
  EXPECT_FALSE(slots.CanTake());  // the consumer waits for 0, and 0 for a slot
  EXPECT_EQ(slots.next_taken(), 0u);
}

// Three owners, each of which contributes to the others' shares, and one that only receives.
JobBucket ThreeOwners() {
  constexpr StageSet kContributes = kStageFill | kStageMove;
  JobBucket bucket(3, {.stages = kContributes, .owner = true});
  bucket.push_back({.stages = kStageMove | kStageDrain});
  for (size_t i = 0; i < bucket.size(); ++i) bucket[i].rank = static_cast<int>(i);
  return bucket;
}

// How many members have had all of theirs when none is left that both want.
int DoneInTheEnd(Exchanges exchanges, size_t members) {
  for (bool any = true; any;) {
    any = false;
    for (size_t i = 0; i < members; ++i) {
      if (exchanges.Done(i) || !exchanges.IsMutual(i)) continue;
      exchanges.CarryOut(i);
      any = true;
    }
  }
  int done = 0;
  for (size_t i = 0; i < members; ++i) done += exchanges.Done(i) ? 1 : 0;
  return done;
}

TEST(ExchangesTest, MeshOrderBringsAllTogether) {
  EXPECT_EQ(DoneInTheEnd(Exchanges(ThreeOwners(), nullptr), 4), 4);
}

TEST(ExchangesTest, OrdersOfTheirOwnMayFormACircle) {
  int stalled = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    stalled += DoneInTheEnd(Exchanges(ThreeOwners(), &random), 4) < 4 ? 1 : 0;
  }
  EXPECT_GT(stalled, 0);
  EXPECT_LT(stalled, 50);
}

TEST(ExchangesTest, OtherBucketsHaveNone) {
  const JobBucket pair = {{.rank = 0, .stages = kStageFill | kStageMove}, {.rank = 1}};
  EXPECT_TRUE(Exchanges(pair, nullptr).Done(0));
}

}  // namespace
}  // namespace sluice::deadlock
