// Results of ranks and rounds come together as the results file says.
#include "stream/outcome.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;

RankOutcome Outcome(double seconds, int64_t items) {
  RankOutcome outcome;
  outcome.items = items;
  outcome.bytes = 100 * items;
  outcome.seconds = seconds;
  outcome.first_item_s = 1;
  outcome.half_s = seconds / 2;
  outcome.later_wait_s = 0.5;
  outcome.peak_slots = items;
  outcome.stage_s.read = 0.25;
  return outcome;
}

TEST(OutcomeTest, TravelsAsText) {
  RankOutcome sent = Outcome(2.5, 7);
  sent.status = absl::NotFoundError("no \"object\"");
  sent.cursor = "here";
  sent.wrong = 3;
  sent.staleness_max = 2;
  sent.item_hash = 0xFEDCBA9876543210u;  // more than a signed number holds
  const RankOutcome got = DecodeOutcome(Encode(sent));
  EXPECT_EQ(got.status, sent.status);
  EXPECT_EQ(got.cursor, "here");
  EXPECT_EQ(got.items, 7);
  EXPECT_EQ(got.wrong, 3);
  EXPECT_EQ(got.staleness_max, 2);
  EXPECT_EQ(got.item_hash, sent.item_hash);
  EXPECT_EQ(got.seconds, 2.5);
  EXPECT_EQ(got.half_s, 1.25);
  EXPECT_EQ(got.peak_slots, 7);
  EXPECT_EQ(got.stage_s.read, 0.25);
}

TEST(OutcomeTest, RanksAddUpByTheSlowestOnesTime) {
  const Result sum = SumOf("sluice", {Outcome(2, 10), Outcome(4, 30)});
  EXPECT_EQ(sum.total.items, 40);
  EXPECT_EQ(sum.total.seconds, 4);
  EXPECT_EQ(sum.total.first_item_s, 1);
  EXPECT_EQ(sum.total.half_s, 2);
  EXPECT_EQ(sum.total.peak_slots, 30);
  EXPECT_EQ(sum.total.stage_s.read, 0.5);
  EXPECT_EQ(sum.stall_share, 0.25);  // 2 x 0.5 s of 1 s and 3 s
}

TEST(OutcomeTest, TheHashOfItemsIsOfAllRanksInTheirOrder) {
  RankOutcome one;
  RankOutcome other;
  one.item_hash = 1;
  other.item_hash = 2;
  const uint64_t hash = SumOf("sluice", {one, other}).total.item_hash;
  EXPECT_EQ(SumOf("loop", {one, other}).total.item_hash, hash);
  EXPECT_NE(SumOf("loop", {other, one}).total.item_hash, hash);
  EXPECT_NE(SumOf("loop", {one, one}).total.item_hash, hash);
}

TEST(OutcomeTest, TheMedianRoundCountsAndEveryWrongElement) {
  std::vector<Result> rounds;
  for (const double seconds : {5, 2, 9, 3}) {
    rounds.push_back(SumOf("serial", {Outcome(seconds, static_cast<int64_t>(seconds))}));
    rounds.back().total.wrong = 1;
  }
  const Result median = MedianOf(rounds);
  EXPECT_EQ(median.mode, "serial");
  EXPECT_EQ(median.total.seconds, 3);
  EXPECT_EQ(median.total.items, 3);
  EXPECT_EQ(median.total.wrong, 4);
  EXPECT_EQ(median.total.peak_slots, 9);
  EXPECT_THAT(median.all_seconds, ElementsAre(5, 2, 9, 3));
}

}  // namespace
}  // namespace sluice::bench
