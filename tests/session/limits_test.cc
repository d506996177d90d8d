// What session options come to.
#include "session/limits.h"

#include <string>

#include "gmock/gmock.h"
#include "main/fails.h"

namespace sluice {
namespace {

constexpr auto kAutomatic = absl::nullopt;

SessionOptions Budget(absl::optional<int64_t> bucket_bytes, int64_t buckets,
                      absl::optional<int64_t> bytes) {
  return {.bucket_bytes = bucket_bytes, .budget_buckets = buckets, .budget_bytes = bytes};
}

void ExpectRefused(const SessionOptions& options, const std::string& text) {
  const auto budget = ResolveBudget(options);
  EXPECT_THAT(budget.status(), Fails(absl::StatusCode::kInvalidArgument, text));
}

int64_t SlotsOf(const SessionOptions& options) { return ResolveBudget(options).value().slots; }

int64_t SlotBytesOf(const SessionOptions& options) {
  return ResolveBudget(options).value().slot_bytes;
}

TEST(ResolveBudgetTest, TheSmallerLimitCounts) {
  EXPECT_EQ(SlotsOf(SessionOptions()), 16);
  EXPECT_EQ(SlotsOf(Budget(100, 8, 799)), 7);
  EXPECT_EQ(SlotsOf(Budget(100, 8, 800)), 8);
  EXPECT_EQ(SlotsOf(Budget(100, 8, 100000)), 8);
  EXPECT_EQ(SlotsOf(Budget(100, 1000, kAutomatic)), 16);
}

TEST(ResolveBudgetTest, KNoLimitIsNoLimit) {
  EXPECT_EQ(SlotsOf(Budget(100, kNoLimit, kNoLimit)), 0);
  EXPECT_EQ(SlotsOf(Budget(100, kNoLimit, 250)), 2);
  EXPECT_EQ(SlotsOf(Budget(100, 5, kNoLimit)), 5);
  EXPECT_EQ(SlotsOf(Budget(100, kNoLimit, kAutomatic)), 16);
}

TEST(ResolveBudgetTest, GivenBucketsAreTheSlots) {
  EXPECT_EQ(SlotBytesOf(Budget(100, 8, 799)), 100);
  EXPECT_EQ(SlotBytesOf(Budget(1 << 30, kNoLimit, kNoLimit)), 1 << 30);
}

TEST(ResolveBudgetTest, AutomaticBucketsHaveSlotsOfEightMebibytes) {
  EXPECT_EQ(SlotBytesOf(SessionOptions()), 8 << 20);
  EXPECT_EQ(SlotBytesOf(Budget(kAutomatic, 1, kAutomatic)), 8 << 20);
  EXPECT_EQ(SlotBytesOf(Budget(kAutomatic, kNoLimit, kNoLimit)), 8 << 20);
  EXPECT_EQ(SlotsOf(Budget(kAutomatic, kNoLimit, kNoLimit)), 0);
  EXPECT_EQ(SlotBytesOf(Budget(kAutomatic, 16, int64_t{1} << 40)), 8 << 20);
}

TEST(ResolveBudgetTest, AutomaticBucketsShareASmallBudget) {
  EXPECT_EQ(SlotBytesOf(Budget(kAutomatic, 16, 4 << 20)), 256 << 10);
  EXPECT_EQ(SlotsOf(Budget(kAutomatic, 16, 4 << 20)), 16);
  EXPECT_EQ(SlotBytesOf(Budget(kAutomatic, 1, 4 << 20)), 4 << 20);
  EXPECT_EQ(SlotsOf(Budget(kAutomatic, 1, 4 << 20)), 1);
  // Slots become fewer before they become tiny.
  EXPECT_EQ(SlotBytesOf(Budget(kAutomatic, 16, 200 << 10)), 64 << 10);
  EXPECT_EQ(SlotsOf(Budget(kAutomatic, 16, 200 << 10)), 3);
  EXPECT_EQ(SlotBytesOf(Budget(kAutomatic, 16, 1000)), 1000);
  EXPECT_EQ(SlotsOf(Budget(kAutomatic, 16, 1000)), 1);
}

TEST(ResolveBudgetTest, WhateverIsGivenAutomaticBucketsFitIt) {
  for (const int64_t buckets : {kNoLimit, int64_t{1}, int64_t{3}, int64_t{16}, int64_t{1000}}) {
    for (int64_t bytes = 16; bytes < int64_t{1} << 40; bytes = bytes * 3 + 1) {
      const SessionOptions options = Budget(kAutomatic, buckets, bytes);
      EXPECT_GE(SlotsOf(options), 1);
      EXPECT_LE(SlotsOf(options) * SlotBytesOf(options), bytes);
      EXPECT_LE(SlotsOf(options), buckets);
    }
  }
}

TEST(ResolveBudgetTest, NoRoomForOneBucketPrintsTheBreakdown) {
  ExpectRefused(Budget(1 << 20, 16, (1 << 20) - 1),
                "budget_bytes 1048575 / bucket_bytes 1048576 = 0 slots (budget_buckets 16)");
  ExpectRefused(Budget(kAutomatic, 16, 15), "budget_bytes 15 / bucket_bytes 16 = 0 slots");
}

TEST(MaxInFlightTest, DeepChannelsAreForFewRanks) {
  SessionOptions options;
  EXPECT_EQ(MaxInFlightOf(options, 1000), 0) << "automatic";
  options.max_in_flight = 5;
  EXPECT_EQ(MaxInFlightOf(options, 1000), 5);
  options.max_in_flight = 4096;
  EXPECT_EQ(MaxInFlightOf(options, 1), 512);
  EXPECT_EQ(MaxInFlightOf(options, 2), 512);
  EXPECT_EQ(MaxInFlightOf(options, 9), 64);
  EXPECT_EQ(MaxInFlightOf(options, 1000), 8);
  options.budget_bytes = kNoLimit;
  EXPECT_EQ(MaxInFlightOf(options, 9), 64);
  options.budget_buckets = kNoLimit;
  EXPECT_EQ(MaxInFlightOf(options, 9), 4096);
}

}  // namespace
}  // namespace sluice
