// The carrier alone, on fakes that write a log: what it moves in which order and in which batches.
// Scripts of whole runners show how it fails, and transports in stream order.
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "session/carrier_rig.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Moves go out with one flush. While messages are under way, a copy ends the batch of commands.
// What was added before it is sent before it.
TEST_F(CarrierTest, ABatchOfMixedCommandsStopsAtEachCopy) {
  Make(6);
  hands_->tells_steps = true;
  hands_->jobs = {{.stages = kStageMove},
                  {.stages = kStageMove, .channel = 1},
                  {.stages = kStageFill, .channel = 2},
                  {.stages = kStageMove},
                  {.stages = kStageDrain, .channel = 2},
                  {.stages = kStageMove, .channel = 1}};
  EXPECT_THAT(PollOnce(), ElementsAre("step", "0 gets slot 0", "1 gets slot 1", "2 gets slot 2",
                                      "receive 1 from 1 tag 0 hop 0: slot 0[0,64)",
                                      "receive 2 from 1 tag 0 hop 0: slot 1[0,64)",
                                      "pack 1: user 2[0,64) -> slot 2[0,64)",  //
                                      "step", "3 gets slot 3", "4 gets slot 4",
                                      "receive 3 from 1 tag 0 hop 0: slot 3[0,64)",
                                      "unpack 1: slot 4[0,64) -> user 4[0,64)",  //
                                      "step", "5 gets slot 5",
                                      "receive 4 from 1 tag 0 hop 0: slot 5[0,64)",  //
                                      "step"));
}

// Nobody waits for a look at the transport between drains, where nothing crosses.
TEST_F(CarrierTest, CopiesAreOneBatchWhereNothingCrosses) {
  Make(3);
  hands_->tells_steps = true;
  const Job job = {.stages = kStageDrain};
  hands_->jobs = {job, job, {.stages = kStageMove}};
  EXPECT_THAT(PollOnce(), ElementsAre("step", "0 gets slot 0",                   //
                                      "unpack 1: slot 0[0,64) -> user 0[0,64)",  //
                                      "1 gets slot 1",                           //
                                      "unpack 2: slot 1[0,64) -> user 1[0,64)",  //
                                      "2 gets slot 2",                           //
                                      "receive 1 from 1 tag 0 hop 0: slot 2[0,64)", "step"));
}

// What has been filled can be sent before the next one is.
TEST_F(CarrierTest, AFillBeforeAMoveEndsTheBatch) {
  Make(2);
  hands_->tells_steps = true;
  const Job job = {.stages = kStageFill | kStageMove};
  hands_->jobs = {job, job};
  EXPECT_THAT(PollOnce(), ElementsAre("step", "0 gets slot 0",                         //
                                      "pack 1: user 0[0,64) -> slot 0[0,64)", "step",  //
                                      "1 gets slot 1",                                 //
                                      "pack 2: user 1[0,64) -> slot 1[0,64)", "step"));
}

TEST_F(CarrierTest, FillsThatCopyNothingAreOneBatch) {
  Make(3);
  hands_->tells_steps = true;
  const Job job = {.stages = kStageFill | kStageMove, .copies = false};
  hands_->jobs = {job, job, job};
  EXPECT_THAT(PollOnce(), ElementsAre("step", "0 gets slot 0", "0 is through filling",  //
                                      "1 gets slot 1", "1 is through filling",          //
                                      "2 gets slot 2", "2 is through filling",
                                      "receive 1 from 1 tag 0 hop 0: slot 0[0,64)",
                                      "receive 2 from 1 tag 0 hop 0: slot 1[0,64)",
                                      "receive 3 from 1 tag 0 hop 0: slot 2[0,64)", "step"));
}

TEST_F(CarrierTest, WhoeverPollsSeesWhatHasEndedFirst) {
  Make(2);
  hands_->tells_steps = true;
  hands_->delivers = true;
  const Job job = {.stages = kStageFill, .copies = false};
  hands_->jobs = {job, job};
  const std::vector<std::string> step = {
      "step",      "0 gets slot 0", "0 is through filling, its last stage",
      "0 is over", "1 gets slot 0", "1 is through filling, its last stage",
      "1 is over"};
  EXPECT_EQ(PollOnce(), step);
  hands_->jobs.push_back(job);
  hands_->leaves = true;
  hands_->delivers = false;
  EXPECT_TRUE(*carrier_->Poll(hands_.get()));
  EXPECT_THAT(log_.Take(),
              ElementsAre("step", "step", "2 gets slot 0", "2 is through filling, its last stage",
                          "2 is over", "step"));
}

TEST_F(CarrierTest, WithoutATransportNothingCrosses) {
  Make(1, nullptr);
  hands_->jobs = {{.stages = kStageFill | kStageDrain}};
  EXPECT_THAT(Poll(), ElementsAre("0 gets slot 0", "pack 1: user 0[0,64) -> slot 0[0,64)"));
  ASSERT_TRUE(device_.End("pack 1"));
  EXPECT_THAT(Poll(),
              ElementsAre("0 is through filling", "unpack 1: slot 0[0,64) -> user 0[0,64)"));
  EXPECT_THAT(Settle(true, false), IsEmpty());
  ASSERT_TRUE(device_.End("unpack 1"));
  EXPECT_THAT(Settle(true, true),
              ElementsAre("0 is through draining, its last stage", "0 is over"));
}

// Room that a new engine needs: tickets begin anew, and so do slots.
TEST_F(CarrierTest, ANewEngineBeginsWithFreeSlots) {
  Make(1);
  hands_->jobs = {{.stages = kStageMove}};
  Poll();
  End("receive 1");
  EXPECT_THAT(Poll().back(), "0 is over");
  EngineOptions options = {.slots = 2};
  ASSERT_TRUE(carrier_->MakeRoom(&options, 1, 2).ok());
  EXPECT_THAT(log_.Take(), ElementsAre("reserve 2"));
  ASSERT_TRUE(carrier_->MakeRoom(nullptr, 4, 8).ok());
  EXPECT_THAT(log_.Take(), ElementsAre("reserve 8"));
  EXPECT_EQ(carrier_->engine()->options().slots, 2);
  EXPECT_EQ(carrier_->stage(1), Stage::kWaiting);
  EXPECT_GE(carrier_->messages()->capacity(), 8);
}

// A failure from outside takes back what can be; others part only later.
TEST_F(CarrierTest, WhatIsTakenBackIsAwaited) {
  Make(2);
  hands_->jobs = {{.stages = kStageMove}, {.stages = kStageFill | kStageMove}};
  Poll();
  carrier_->Poison(absl::CancelledError("closed"));
  EXPECT_THAT(Poll(), ElementsAre("failed: closed"));
  EXPECT_THAT(Settle(false, false), IsEmpty());
  transport_->HoldParting(true);
  EXPECT_THAT(Settle(true, false), ElementsAre("part"));
  End("receive 1", absl::CancelledError("withdrawn"));
  End("pack 1");
  EXPECT_THAT(Settle(true, false), IsEmpty());
  EXPECT_FALSE(carrier_->has_operations());
  transport_->HoldParting(false);
  EXPECT_THAT(Settle(true, true), IsEmpty());
  EXPECT_TRUE(carrier_->engine()->idle());
}

}  // namespace
}  // namespace sluice
