// What an engine with several lanes promises about single calls. Protocols are in scripts/,
// liveness in the searches.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/engine.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

BucketId Id(uint64_t run, uint64_t n) { return BucketId({.run = run, .n = n}); }

Submission Bucket(uint64_t run, uint64_t n, int lane, int channel) {
  return {.id = Id(run, n),
          .lane = lane,
          .channel = channel,
          .stages = kStageFill | kStageMove,
          .cookie = n};
}

TEST(Lanes, TicketsTellLanesApart) {
  Engine engine({.channels = 2, .slots = 4, .lanes = 2});
  const Ticket first = engine.Submit(Bucket(1, 1, 0, 0));
  const Ticket second = engine.Submit(Bucket(1, 2, 1, 1));
  EXPECT_NE(first, second);
  Command command;
  while (engine.Next(&command)) {
  }
  engine.Finish(first);  // the fill
  ASSERT_TRUE(engine.Next(&command));
  EXPECT_EQ(command.ticket, first);
  engine.Finish(first);
  Engine::Oldest oldest;
  ASSERT_TRUE(engine.OldestUnfinished(&oldest));
  EXPECT_EQ(oldest.id, Id(1, 2));
  EXPECT_EQ(oldest.lane, 1);
}

TEST(Lanes, ALaneMayCloseAndBeAnnouncedAgain) {
  Engine engine({.channels = 2, .lanes = 2});
  engine.Announce(1, Id(1, 0));
  engine.Announce(1, Id(1, 5));  // the start is skipped
  engine.Announce(0, Id(2, 0));
  engine.Submit(Bucket(2, 0, 0, 0));
  engine.Submit(Bucket(1, 5, 1, 1));
  engine.Close(1);
  engine.Close(1);
  engine.Announce(1, Id(3, 0));
  engine.Submit(Bucket(3, 1, 1, 1));
  EXPECT_EQ(engine.counters().submitted, 3);
}

// Announcing twice what is known already changes nothing.
TEST(Lanes, WhatWasSubmittedIsABoundToo) {
  Engine engine({.channels = 2, .slots = 1, .lanes = 2});
  engine.Announce(1, Id(1, 0));
  engine.Announce(0, Id(2, 0));
  engine.Submit(Bucket(1, 7, 1, 1));
  engine.Announce(1, Id(1, 0));
  engine.Submit(Bucket(2, 0, 0, 0));
  engine.Thaw(1, 1, engine.Freeze(1, 1));  // cancels it
  Command command;
  EXPECT_FALSE(engine.Next(&command));
  engine.Announce(1, Id(3, 0));
  ASSERT_TRUE(engine.Next(&command));
  EXPECT_EQ(command.id, Id(2, 0));
}

// Rings of different fill, places used again and again, commands in any lane.
TEST(Lanes, LongRunThroughSmallRings) {
  constexpr int kLanes = 3;
  Engine engine({.channels = 6, .max_in_flight = 2, .slots = 4, .look_ahead = 3, .lanes = kLanes});
  std::vector<Command> under_way;
  uint64_t run = 0;
  for (size_t step = 0; step < 50000; ++step) {
    // A run of one bucket at a time, in a lane that has room.
    for (int i = 0; i < kLanes; ++i) {
      const int lane = static_cast<int>((step + static_cast<size_t>(i)) % kLanes);
      if (!engine.CanSubmit(lane)) continue;
      ++run;
      engine.Submit(Bucket(run, run % 8000, lane, 2 * lane + static_cast<int>(run % 2)));
    }
    Command command;
    while (engine.Next(&command)) under_way.push_back(command);
    ASSERT_FALSE(under_way.empty());
    const size_t which = step * 7 % under_way.size();
    engine.Finish(under_way[which].ticket);
    under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(which));
  }
  EXPECT_GT(engine.counters().finished, 20000);
  EXPECT_EQ(engine.counters().held_buckets_peak, 4);
}

TEST(Lanes, PoisonEndsAllOfThem) {
  Engine engine({.channels = 2, .slots = 1, .lanes = 2});
  engine.Submit(Bucket(1, 1, 0, 0));
  engine.Submit(Bucket(1, 2, 1, 1));
  engine.Poison(absl::InternalError("stalled"));
  EXPECT_TRUE(engine.idle());
  EXPECT_EQ(engine.counters().failed, 2);
  EXPECT_FALSE(engine.CanSubmit(0));
  EXPECT_FALSE(engine.CanSubmit(1));
}

TEST(Lanes, FreezeReturnsTheLargestThatWasEverAdmitted) {
  Engine engine({.channels = 1, .max_in_flight = 2, .slots = 2, .lanes = 1});
  EXPECT_EQ(engine.Freeze(0, 4), BucketId());
  engine.Thaw(0, 4, BucketId());
  const Ticket first = engine.Submit(Bucket(4, 1, 0, 0));
  engine.Submit(Bucket(4, 2, 0, 0));
  engine.Submit(Bucket(4, 3, 0, 0));
  Command command;
  while (engine.Next(&command)) {
  }
  engine.Finish(first);
  EXPECT_EQ(engine.Freeze(0, 4), Id(4, 2));
  engine.Thaw(0, 4, Id(4, 2));
  EXPECT_EQ(engine.counters().cancelled, 1);
  EXPECT_EQ(engine.Freeze(0, 4), Id(4, 2));
}

// Also when it has ended, and a smaller one is still held.
TEST(Lanes, FreezeRemembersWhatHasEnded) {
  Engine engine({.channels = 2, .max_in_flight = 1, .slots = 2});
  engine.Submit(Bucket(4, 1, 0, 0));
  const Ticket second = engine.Submit(Bucket(4, 2, 0, 1));
  engine.Submit(Bucket(4, 3, 0, 0));
  Command command;
  while (engine.Next(&command)) {
  }
  engine.Finish(second);
  ASSERT_TRUE(engine.Next(&command));
  engine.Finish(second);
  EXPECT_EQ(engine.Freeze(0, 4), Id(4, 2));
}

TEST(LanesDeathTest, Order) {
  EXPECT_DEATH(Engine({.lanes = 0}), "from 1 to 4");
  EXPECT_DEATH(Engine({.lanes = 5}), "from 1 to 4");
  Engine engine({.channels = 3, .lanes = 2});
  EXPECT_DEATH(engine.Announce(2, Id(1, 0)), "no such lane");
  EXPECT_DEATH(engine.CanSubmit(-1), "no such lane");
  engine.Announce(0, Id(2, 0));
  EXPECT_DEATH(engine.Announce(0, Id(1, 9)), "may not fall");
  EXPECT_DEATH(engine.Submit(Bucket(1, 9, 0, 0)), "below what the lane announced");
  engine.Submit(Bucket(2, 5, 0, 0));
  EXPECT_DEATH(engine.Submit(Bucket(2, 4, 0, 0)), "must ascend");
  EXPECT_DEATH(engine.Submit(Bucket(2, 4, 1, 1)), "not announced");
  EXPECT_DEATH(engine.Announce(1, Id(2, 4)), "not announced");
  EXPECT_DEATH(engine.Submit(Bucket(2, 6, 1, 0)), "belongs to another lane");
  // A reset of the counters does not make it forget.
  engine.ResetCounters();
  EXPECT_DEATH(engine.Submit(Bucket(2, 4, 1, 1)), "not announced");
}

TEST(LanesDeathTest, Freezing) {
  Engine engine({.channels = 1, .slots = 1});
  engine.Submit(Bucket(2, 5, 0, 0));
  EXPECT_DEATH(engine.Thaw(0, 2, Id(2, 5)), "not frozen for this run");
  Command command;
  EXPECT_TRUE(engine.Next(&command));
  EXPECT_EQ(engine.Freeze(0, 2), Id(2, 5));
  EXPECT_DEATH(engine.Freeze(0, 2), "frozen already");
  EXPECT_DEATH(engine.Thaw(0, 3, Id(3, 5)), "not frozen for this run");
  EXPECT_DEATH(engine.Thaw(0, 2, Id(2, 4)), "not to be cancelled");
  engine.Thaw(0, 2, Id(2, 5));
  engine.Finish(command.ticket);
  EXPECT_TRUE(engine.Next(&command));
  engine.Finish(command.ticket);
  EXPECT_DEATH(engine.Freeze(0, 1), "a later one has begun to end");
}

}  // namespace
}  // namespace sluice
