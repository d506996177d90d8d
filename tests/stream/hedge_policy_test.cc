// When reads count as slow.
#include "session/shard/hedge_policy.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr int64_t kMs = 1'000'000;

HedgePolicy Enabled() {
  HedgeOptions options;
  options.enabled = true;
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

}  // namespace
}  // namespace sluice
