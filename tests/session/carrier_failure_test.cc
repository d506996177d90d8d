// What a carrier does when an operation, a stage or a seam fails, and when a bucket is dropped.
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/carrier_rig.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(CarrierTest, AMessageThatFailsEndsAllThatIsUnderWay) {
  Make(2);
  hands_->jobs = {{.stages = kStageMove | kStageDrain, .messages = 2},
                  {.stages = kStageFill | kStageMove, .copies = 2}};
  Poll();
  End("receive 1", absl::UnavailableError("peer gone"));
  EXPECT_THAT(Poll(), ElementsAre(Named(0, "peer gone")));
  EXPECT_THAT(Poll(), ElementsAre(Named(0, "peer gone")));
  EXPECT_FALSE(carrier_->engine()->idle());
  // The second message and the copy are still under way. Nothing follows them.
  EXPECT_THAT(Settle(true, false), ElementsAre("part"));
  End("receive 2");
  EXPECT_THAT(Settle(true, false), IsEmpty());
  End("pack 1");
  EXPECT_THAT(Settle(true, true), IsEmpty());
  EXPECT_TRUE(carrier_->engine()->idle());
  EXPECT_EQ(carrier_->engine()->counters().failed, 2);
}

TEST_F(CarrierTest, AStageThatCannotGoOnEndsWithWhatItHasBegun) {
  Make(1);
  hands_->jobs = {{.stages = kStageFill, .refuses = Stage::kFilling}};
  EXPECT_THAT(Poll(), ElementsAre("0 gets slot 0", "pack 1: user 0[0,64) -> slot 0[0,64)",
                                  Named(0, "cannot go on")));
  EXPECT_FALSE(carrier_->engine()->idle());
  End("pack 1");
  EXPECT_THAT(Settle(false, true), IsEmpty());
  EXPECT_TRUE(carrier_->engine()->idle());

  Make(1);
  hands_->jobs = {{.stages = kStageFill}};
  device_.RefuseNext(absl::InternalError("no kernel"));
  EXPECT_THAT(Poll(), ElementsAre("0 gets slot 0", Named(0, "no kernel")));
  EXPECT_TRUE(carrier_->engine()->idle());

  Make(1);
  hands_->jobs = {{.stages = kStageFill, .copies = 0, .refuses = Stage::kDone}};
  EXPECT_THAT(Poll(), ElementsAre("0 gets slot 0", "0 is through filling, its last stage",
                                  "0 is over", Named(0, "not what was asked for")));
}

TEST_F(CarrierTest, SeamsThatFailAsAWhole) {
  const auto begin = [this] {
    Make(2);
    hands_->jobs = {{.stages = kStageMove}, {.stages = kStageFill}};
  };
  begin();
  transport_->RefuseNext(absl::ResourceExhaustedError("no room"));
  // Not the bucket's that was to copy next.
  EXPECT_THAT(Poll(), ElementsAre("0 gets slot 0", "1 gets slot 1", "failed: no room"));
  EXPECT_THAT(Settle(true, true), ElementsAre("part"));

  begin();
  Poll();
  transport_->Break(absl::UnavailableError("the network is down"));
  EXPECT_THAT(Poll(), ElementsAre("failed: the network is down"));
  EXPECT_THAT(Settle(true, false), ElementsAre("part"));
  End("pack 1");
  EXPECT_THAT(Settle(true, true), IsEmpty());

  begin();
  Poll();
  device_.Break(absl::InternalError("ECC"));
  EXPECT_THAT(Poll(), ElementsAre("failed: ECC"));
  End("receive 2", absl::CancelledError("parted"));
  EXPECT_THAT(Settle(true, false), ElementsAre("part"));
  EXPECT_THAT(Settle(true, true), IsEmpty());
  EXPECT_EQ(carrier_->engine()->counters().held_buckets, 0);
}

// A failure from outside takes back what can be; others part only later.
TEST_F(CarrierTest, WhatIsTakenBackIsAwaited) {
  Make(2);
  hands_->jobs = {{.stages = kStageMove}, {.stages = kStageFill | kStageMove}};
  Poll();
  carrier_->Poison(absl::CancelledError("closed"));
  EXPECT_THAT(Poll(), ElementsAre("failed: closed"));
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

TEST_F(CarrierTest, InStreamOrderANetworkThatFailsBeforeTheMarkFailsTheBucket) {
  Make(1, true);
  hands_->jobs = {{.stages = kStageMove}};
  Poll();
  End("receive 1");
  EXPECT_THAT(Poll(), ElementsAre("0 is through moving, its last stage", "mark 1"));
  transport_->Break(absl::UnavailableError("the network is down"));
  End("mark 1");
  EXPECT_THAT(Poll(), ElementsAre("failed: the network is down"));
  // The device is asked when it has come past everything, once.
  EXPECT_THAT(Settle(true, false), ElementsAre("part", "mark 2"));
  EXPECT_THAT(Settle(true, false), IsEmpty());
  EXPECT_TRUE(carrier_->engine()->idle());
  EXPECT_EQ(carrier_->engine()->counters().failed, 1);
  End("mark 2");
  EXPECT_THAT(Settle(true, true), IsEmpty());
}

}  // namespace
}  // namespace sluice
