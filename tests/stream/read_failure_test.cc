// Reads that fail, those that are hedged, and those that are one request.
#include "session/shard/read_failure.h"

#include <cstdint>
#include <vector>

#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/shard/grouped_reads.h"
#include "session/shard/hedge_policy.h"
#include "session/shard/request_pace.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr absl::string_view kPayload = "sluice/read-failure";

TEST(ReadFailureTest, TheMessageSaysWhichBytesAndWhy) {
  EXPECT_EQ(
      MakeReadFailure(absl::StatusCode::kUnavailable, {"s.bin", 100, 50, 1, "no answer"}).message(),
      "bytes 100 to 149 of s.bin: gave up after 1 attempt: no answer");
  const absl::Status status =
      MakeReadFailure(absl::StatusCode::kDataLoss, {"s.bin", 0, 1, 4, "cut"});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "bytes 0 to 0 of s.bin: gave up after 4 attempts: cut");
}

TEST(ReadFailureTest, TheFailureComesBackWhateverItsTexts) {
  const ReadFailure failure = {"a\n7\nb", int64_t{1} << 60, 5, 3, "line 1\nline 2"};
  const auto found = ReadFailureOf(MakeReadFailure(absl::StatusCode::kUnavailable, failure));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->object, failure.object);
  EXPECT_EQ(found->offset, failure.offset);
  EXPECT_EQ(found->bytes, failure.bytes);
  EXPECT_EQ(found->attempts, failure.attempts);
  EXPECT_EQ(found->cause, failure.cause);
}

TEST(ReadFailureTest, OtherErrorsHaveNone) {
  EXPECT_FALSE(ReadFailureOf(absl::OkStatus()).has_value());
  absl::Status status = absl::UnavailableError("bytes 0 to 0 of s.bin: gave up");
  EXPECT_FALSE(ReadFailureOf(status).has_value());
  for (const char* damaged : {"", "1\n2\n3\n9\nshort", "1\n2\n3\n1", "x\n2\n3\n1\nab"}) {
    status.SetPayload(kPayload, absl::Cord(damaged));
    EXPECT_FALSE(ReadFailureOf(status).has_value()) << damaged;
  }
  status.SetPayload(kPayload, absl::Cord("1\n2\n3\n1\nab"));
  EXPECT_TRUE(ReadFailureOf(status).has_value());
}

// Answers that many requests.
void Answer(RequestPace* pace, int requests) {
  for (int i = 0; i < requests; ++i) pace->Answered();
}

TEST(RequestPaceTest, WhatIsLateHalvesWhatWasUnderWay) {
  RequestPace pace(100);
  EXPECT_EQ(pace.limit(), 100);
  EXPECT_TRUE(pace.Late(10, 32, 50));
  EXPECT_EQ(pace.limit(), 16);
  EXPECT_FALSE(pace.Late(49, 16, 60)) << "it was begun before the limit fell";
  EXPECT_EQ(pace.limit(), 16);
  EXPECT_TRUE(pace.Late(50, 3, 70));
  EXPECT_EQ(pace.limit(), 1);
  EXPECT_TRUE(pace.Late(70, 1, 80));
  EXPECT_EQ(pace.limit(), 1);
}

TEST(RequestPaceTest, ALateRequestNeverRaisesTheLimit) {
  RequestPace pace(100);
  ASSERT_TRUE(pace.Late(0, 20, 1));
  EXPECT_TRUE(pace.Late(2, 90, 3));
  EXPECT_EQ(pace.limit(), 10);
}

TEST(RequestPaceTest, AsManyAnswersAsTheLimitRaiseItByAnEighth) {
  RequestPace pace(19);
  ASSERT_TRUE(pace.Late(0, 32, 1));
  Answer(&pace, 15);
  EXPECT_EQ(pace.limit(), 16);
  Answer(&pace, 1);
  EXPECT_EQ(pace.limit(), 18);
  Answer(&pace, 17);
  EXPECT_EQ(pace.limit(), 18);
  Answer(&pace, 1);
  EXPECT_EQ(pace.limit(), 19);  // the most
  Answer(&pace, 100);
  EXPECT_EQ(pace.limit(), 19);
}

TEST(RequestPaceTest, AFallForgetsTheAnswersBefore) {
  RequestPace pace(8);
  ASSERT_TRUE(pace.Late(0, 8, 1));
  Answer(&pace, 3);
  ASSERT_TRUE(pace.Late(1, 4, 2));
  Answer(&pace, 1);
  EXPECT_EQ(pace.limit(), 2);
  Answer(&pace, 1);
  EXPECT_EQ(pace.limit(), 3);
}

constexpr int64_t kMs = 1'000'000;

HedgePolicy Enabled() {
  const HedgeOptions options = {.enabled = true};
  return HedgePolicy(options);
}

TEST(HedgePolicyTest, KnowsNothingAtFirst) {
  HedgePolicy policy = Enabled();
  for (int i = 0; i < 10; ++i) policy.Learn(kMs);
  EXPECT_EQ(policy.threshold_ns(), INT64_MAX);
}

TEST(HedgePolicyTest, OrdinarySpreadIsNoTail) {
  HedgePolicy policy = Enabled();
  for (int64_t i = 0; i < 1000; ++i) policy.Learn((50 + i % 10) * kMs);
  EXPECT_GT(policy.threshold_ns(), 60 * kMs);
  EXPECT_LT(policy.threshold_ns(), 120 * kMs);
}

TEST(HedgePolicyTest, RareSlowReadsDoNotMoveTheThreshold) {
  HedgePolicy policy = Enabled();
  for (int64_t i = 0; i < 1000; ++i) policy.Learn(i % 50 == 0 ? 500 * kMs : 50 * kMs);
  EXPECT_LT(policy.threshold_ns(), 100 * kMs);
}

TEST(HedgePolicyTest, FollowsStorageThatBecomesSlower) {
  HedgePolicy policy = Enabled();
  for (int i = 0; i < 5000; ++i) policy.Learn(kMs);
  for (int i = 0; i < 5000; ++i) policy.Learn(100 * kMs);
  EXPECT_GT(policy.threshold_ns(), 100 * kMs);
}

TEST(HedgePolicyTest, ExtremeLatenciesAreCounted) {
  HedgePolicy policy = Enabled();
  for (int i = 0; i < 100; ++i) policy.Learn(i % 2 == 0 ? 0 : INT64_MAX);
  EXPECT_GT(policy.threshold_ns(), 0);
}

TEST(HedgePolicyTest, ASmallShareAllowsOneEvenInAShortStream) {
  HedgePolicy policy = Enabled();
  policy.CountRequest();
  EXPECT_TRUE(policy.MayHedge());
  policy.CountHedge();
  EXPECT_FALSE(policy.MayHedge());
  for (int i = 0; i < 40; ++i) policy.CountRequest();
  EXPECT_TRUE(policy.MayHedge());
}

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
