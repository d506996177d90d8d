// What an engine promises about single calls: the table of stages, slots, tickets, checks, copies.
// Protocols are in scripts/, liveness in the searches.
#include "engine/engine.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Submission Bucket(uint64_t n, int channel = 0, StageSet stages = kStageDrain) {
  return {.id = BucketId({.n = n}),
          .channel = channel,
          .stages = stages,
          .staging_bytes = 0,
          .operations = 1,
          .cookie = n};
}

std::optional<Command> Next(Engine& engine) {
  Command command;
  if (!engine.Next(&command)) return std::nullopt;
  return command;
}

std::vector<Command> All(Engine& engine) {
  std::vector<Command> commands;
  while (const std::optional<Command> command = Next(engine)) commands.push_back(*command);
  return commands;
}

TEST(Stage, EveryPartGoesThroughItsOwnStagesInOrder) {
  for (StageSet set = 1; set < 8; ++set) {
    std::vector<Stage> expected;
    if (set & kStageFill) expected.push_back(Stage::kFilling);
    if (set & kStageMove) expected.push_back(Stage::kMoving);
    if (set & kStageDrain) expected.push_back(Stage::kDraining);
    expected.push_back(Stage::kDone);
    std::vector<Stage> actual;
    Stage stage = Stage::kWaiting;
    while (!HasEnded(stage)) actual.push_back(stage = NextStage(stage, set));
    EXPECT_EQ(actual, expected) << int{set};
  }
}

TEST(StageDeathTest, NothingFollowsWhatIsNotThere) {
  EXPECT_DEATH(NextStage(Stage::kWaiting, 0), "no such stage");
  EXPECT_DEATH(NextStage(Stage::kFilling, kStageMove), "no such stage");
  EXPECT_DEATH(NextStage(Stage::kDone, kStageMove), "no stage follows");
  EXPECT_DEATH(NextStage(Stage::kWaiting, 8), "no stage follows");
}

TEST(Engine, CommandCarriesTheBucket) {
  Engine engine({});
  const Ticket ticket = engine.Submit(Bucket(7, 0, kStageFill | kStageMove));
  const std::optional<Command> command = Next(engine);
  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(command->ticket, ticket);
  EXPECT_EQ(command->stage, Stage::kFilling);
  EXPECT_EQ(command->cookie, 7);
  EXPECT_EQ(command->id, BucketId({.n = 7}));
  EXPECT_EQ(command->slot, 0);
}

TEST(Engine, TheSlotFreedLastGoesOutFirst) {
  Engine engine({.channels = 1, .max_in_flight = 4, .slots = 4});
  std::vector<Ticket> tickets;
  for (uint64_t n = 0; n < 4; ++n) tickets.push_back(engine.Submit(Bucket(n)));
  EXPECT_EQ(All(engine).size(), 4);
  engine.Finish(tickets[1]);
  engine.Finish(tickets[2]);
  engine.Submit(Bucket(4));
  engine.Submit(Bucket(5));
  const std::vector<Command> commands = All(engine);
  ASSERT_EQ(commands.size(), 2);
  EXPECT_EQ(commands[0].slot, 2);
  EXPECT_EQ(commands[1].slot, 1);
}

TEST(Engine, SmallestFirstAcrossChannels) {
  Engine engine({.channels = 3, .max_in_flight = 1, .slots = 1});
  const std::vector<int> channel_of = {2, 0, 2, 1, 0};
  for (size_t n = 0; n < channel_of.size(); ++n) engine.Submit(Bucket(n, channel_of[n]));
  std::vector<uint64_t> order;
  while (const std::optional<Command> command = Next(engine)) {
    order.push_back(command->cookie);
    engine.Finish(command->ticket);
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_TRUE(engine.idle());
}

TEST(Engine, ACopyGoesItsOwnWay) {
  Engine engine({.channels = 1, .max_in_flight = 2, .slots = 2});
  engine.Submit(Bucket(1));
  engine.Submit(Bucket(2));
  Engine copy = engine;
  EXPECT_EQ(All(engine).size(), 2);
  EXPECT_EQ(copy.counters().admitted, 0);
  copy.Submit(Bucket(3));
  const std::vector<Command> commands = All(copy);
  ASSERT_EQ(commands.size(), 2);
  copy.Finish(commands[0].ticket);
  EXPECT_EQ(All(copy).size(), 1);
  EXPECT_EQ(engine.counters().submitted, 2);
}

// Places in the ring are used again and again, and channels forget ended buckets.
TEST(Engine, LongRunThroughASmallRing) {
  Engine engine({.channels = 3, .max_in_flight = 2, .slots = 3, .look_ahead = 5});
  uint64_t submitted = 0;
  std::vector<Command> under_way;
  for (int step = 0; step < 100000; ++step) {
    while (engine.CanSubmit()) {
      const uint64_t n = submitted++;
      const StageSet stages = n % 2 == 0 ? kStageFill | kStageMove : kStageMove | kStageDrain;
      Submission submission = Bucket(n % 4096, static_cast<int>(n * 7 % 3), stages);
      submission.id = submission.id.WithRun(n / 4096);
      engine.Submit(submission);
    }
    for (const Command& command : All(engine)) under_way.push_back(command);
    ASSERT_FALSE(under_way.empty());
    const auto one = under_way.begin() +
                     static_cast<std::ptrdiff_t>(static_cast<size_t>(step) * 13 % under_way.size());
    engine.Finish(one->ticket);
    under_way.erase(one);
  }
  EXPECT_GT(engine.counters().finished, 40000);
  EXPECT_EQ(engine.counters().held_buckets_peak, 3);
}

TEST(Engine, OldestUnfinished) {
  Engine engine({.channels = 2, .max_in_flight = 1, .slots = 2});
  Engine::Oldest oldest;
  EXPECT_FALSE(engine.OldestUnfinished(&oldest));
  const Ticket first = engine.Submit(Bucket(1, 1, kStageMove));
  engine.Submit(Bucket(2, 0, kStageFill));
  ASSERT_TRUE(engine.OldestUnfinished(&oldest));
  EXPECT_EQ(oldest.stage, Stage::kWaiting);
  EXPECT_EQ(All(engine).size(), 2);
  ASSERT_TRUE(engine.OldestUnfinished(&oldest));
  EXPECT_EQ(oldest.cookie, 1);
  EXPECT_EQ(oldest.channel, 1);
  EXPECT_EQ(oldest.stage, Stage::kMoving);
  engine.Finish(first);
  ASSERT_TRUE(engine.OldestUnfinished(&oldest));
  EXPECT_EQ(oldest.cookie, 2);
}

TEST(Engine, TheFirstFailureIsKept) {
  Engine engine({});
  const Ticket first = engine.Submit(Bucket(1));
  const Ticket second = engine.Submit(Bucket(2));
  engine.Submit(Bucket(3));
  EXPECT_EQ(All(engine).size(), 2);
  engine.Fail(first, absl::UnavailableError("link"));
  engine.Poison(absl::InternalError("later"));
  EXPECT_EQ(engine.status(), absl::UnavailableError("link"));
  EXPECT_FALSE(engine.CanSubmit());
  EXPECT_THAT(engine.DescribeStall(), HasSubstr("UNAVAILABLE: link"));
  EXPECT_FALSE(engine.idle());
  engine.Fail(second, absl::DataLossError("last"));
  EXPECT_EQ(engine.status(), absl::UnavailableError("link"));
  EXPECT_TRUE(engine.idle());
  EXPECT_EQ(engine.counters().failed, 3);
  EXPECT_EQ(engine.counters().held_buckets, 0);
}

TEST(Engine, NoChannelsNoWork) {
  Engine engine({.channels = 0});
  EXPECT_TRUE(engine.idle());
  EXPECT_FALSE(Next(engine).has_value());
  EXPECT_EQ(engine.blocked(), Blocked::kNothingWaiting);
}

TEST(Engine, CancellingManyKeepsTheHeapBounded) {
  Engine engine({.channels = 8, .max_in_flight = 1, .slots = 1, .look_ahead = 16});
  const Ticket held = engine.Submit(Bucket(0));
  EXPECT_EQ(All(engine).size(), 1);
  for (uint64_t n = 1; n < 16; ++n) engine.Submit(Bucket(n, static_cast<int>(n % 8)));
  engine.Thaw(0, 0, engine.Freeze(0, 0));
  EXPECT_EQ(engine.counters().cancelled, 15);
  EXPECT_EQ(engine.blocked(), Blocked::kNothingWaiting);
  engine.Finish(held);
  EXPECT_TRUE(engine.idle());
  for (uint64_t n = 16; n < 32; ++n) {
    Submission submission = Bucket(n, static_cast<int>(n % 8));
    submission.id = submission.id.WithRun(1);
    engine.Submit(submission);
  }
  int finished = 0;
  while (const std::optional<Command> command = Next(engine)) {
    engine.Finish(command->ticket);
    ++finished;
  }
  EXPECT_EQ(finished, 16);
}

TEST(EngineDeathTest, Options) {
  EXPECT_DEATH(Engine({.slots = 0}), "does not hold one bucket");
  EXPECT_DEATH(Engine({.max_in_flight = 0}), "at least 1");
  EXPECT_DEATH(Engine({.look_ahead = 0}), "look_ahead");
}

TEST(EngineDeathTest, Submissions) {
  Engine engine({.channels = 1, .look_ahead = 2});
  engine.Submit(Bucket(5));
  EXPECT_DEATH(engine.Submit(Bucket(5)), "must ascend");
  EXPECT_DEATH(engine.Submit(Bucket(4)), "must ascend");
  EXPECT_DEATH(engine.Submit(Bucket(6, 1)), "no such channel");
  EXPECT_DEATH(engine.Submit(Bucket(6, -1)), "no such channel");
  EXPECT_DEATH(engine.Submit(Bucket(6, 0, 0)), "no such stage");
  engine.Submit(Bucket(6));
  EXPECT_DEATH(engine.Submit(Bucket(7)), "without room");
  engine.Poison(absl::InternalError("x"));
  EXPECT_DEATH(engine.Submit(Bucket(7)), "without room");
}

TEST(EngineDeathTest, Tickets) {
  Engine engine({.channels = 1, .look_ahead = 2});
  const Ticket ticket = engine.Submit(Bucket(1));
  EXPECT_DEATH(engine.Finish(ticket), "under way");
  EXPECT_DEATH(engine.Fail(ticket, absl::InternalError("x")), "under way");
  EXPECT_DEATH(engine.Finish(ticket + 1), "not live");
  EXPECT_EQ(All(engine).size(), 1);
  EXPECT_DEATH(engine.Fail(ticket, absl::OkStatus()), "no failure");
  engine.Finish(ticket);
  EXPECT_DEATH(engine.Finish(ticket), "not live");
  EXPECT_DEATH(engine.Fail(ticket, absl::InternalError("x")), "not live");
  engine.Submit(Bucket(2));
  engine.Submit(Bucket(3));  // takes the place of the first
  EXPECT_DEATH(engine.Finish(ticket), "not live");
}

}  // namespace
}  // namespace sluice
