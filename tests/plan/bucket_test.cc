// BucketId: the packing loses nothing, and its order is the order of the fields.
#include "plan/bucket.h"

#include <cstdint>
#include <random>
#include <tuple>

#include "gtest/gtest.h"

namespace sluice {
namespace {

uint64_t Max(int bits) { return (uint64_t{1} << bits) - 1; }

BucketIdFields Largest() {
  return {.run = Max(kRunBits),
          .window = Max(kWindowBits),
          .round = Max(kRoundBits),
          .phase = Max(kPhaseBits),
          .src = Max(kRankBits),
          .dst = Max(kRankBits),
          .n = Max(kCountBits)};
}

auto InOrder(const BucketIdFields& f) {
  return std::tuple(f.run, f.window, f.round, f.phase, f.src, f.dst, f.n);
}

// Small values often, so that fields agree and the later ones decide.
BucketIdFields Random(std::mt19937_64& random) {
  const auto draw = [&random](int bits) {
    return random() % 2 == 0 ? random() % 2 : random() & Max(bits);
  };
  return {.run = draw(kRunBits),
          .window = draw(kWindowBits),
          .round = draw(kRoundBits),
          .phase = draw(kPhaseBits),
          .src = draw(kRankBits),
          .dst = draw(kRankBits),
          .n = draw(kCountBits)};
}

TEST(BucketId, DefaultIsTheSmallest) {
  EXPECT_EQ(BucketId().fields(), BucketIdFields());
  EXPECT_EQ(BucketId(), BucketId(BucketIdFields()));
  EXPECT_LT(BucketId(), BucketId({.n = 1}));
}

TEST(BucketId, EveryBitOfBothWordsIsUsed) {
  const BucketId id(Largest());
  EXPECT_EQ(id.high(), ~uint64_t{0});
  EXPECT_EQ(id.low(), ~uint64_t{0});
  EXPECT_EQ(id.fields(), Largest());
}

TEST(BucketId, RoundTripAndOrder) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const BucketIdFields a = Random(random);
    const BucketIdFields b = Random(random);
    ASSERT_EQ(BucketId(a).fields(), a);
    ASSERT_EQ(BucketId(a) < BucketId(b), InOrder(a) < InOrder(b));
    ASSERT_EQ(BucketId(a) == BucketId(b), a == b);
  }
}

TEST(BucketId, WithRunChangesTheRunAlone) {
  BucketIdFields fields = Largest();
  fields.window = 5;
  const BucketId id(fields);
  fields.run = 3;
  EXPECT_EQ(id.WithRun(3), BucketId(fields));
  EXPECT_EQ(id.WithRun(3).WithRun(Max(kRunBits)), id);
}

TEST(BucketId, ToString) {
  const BucketId id({.run = 3, .window = 0, .round = 2, .phase = 1, .src = 4, .dst = 7, .n = 9});
  EXPECT_EQ(id.ToString(), "run 3 window 0 round 2 phase 1, rank 4 -> 7, n 9");
}

TEST(BucketIdDeathTest, FieldsMustFit) {
  EXPECT_DEATH(BucketId({.run = Max(kRunBits) + 1}), "does not fit");
  EXPECT_DEATH(BucketId({.dst = Max(kRankBits) + 1}), "does not fit");
  EXPECT_DEATH(BucketId({.n = Max(kCountBits) + 1}), "does not fit");
  EXPECT_DEATH(BucketId().WithRun(Max(kRunBits) + 1), "does not fit");
}

}  // namespace
}  // namespace sluice
