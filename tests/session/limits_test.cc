// What session options come to.
#include "session/limits.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using testing::HasSubstr;

SessionOptions Budget(int64_t bucket_bytes, int64_t buckets, int64_t bytes) {
  SessionOptions options;
  options.bucket_bytes = bucket_bytes;
  options.budget_buckets = buckets;
  options.budget_bytes = bytes;
  return options;
}

void ExpectRefused(const SessionOptions& options, const std::string& text) {
  const auto slots = ResolveSlots(options);
  EXPECT_EQ(slots.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(slots.status().message()), HasSubstr(text));
}

TEST(ResolveSlotsTest, TheSmallerLimitCounts) {
  EXPECT_EQ(ResolveSlots(SessionOptions()).value(), 16);
  EXPECT_EQ(ResolveSlots(Budget(100, 8, 799)).value(), 7);
  EXPECT_EQ(ResolveSlots(Budget(100, 8, 800)).value(), 8);
  EXPECT_EQ(ResolveSlots(Budget(100, 8, 100000)).value(), 8);
  EXPECT_EQ(ResolveSlots(Budget(100, 1000, -1)).value(), 16);
}

TEST(ResolveSlotsTest, ZeroIsNoLimit) {
  EXPECT_EQ(ResolveSlots(Budget(100, 0, 0)).value(), 0);
  EXPECT_EQ(ResolveSlots(Budget(100, 0, 250)).value(), 2);
  EXPECT_EQ(ResolveSlots(Budget(100, 5, 0)).value(), 5);
  EXPECT_EQ(ResolveSlots(Budget(100, 0, -1)).value(), 16);
}

TEST(ResolveSlotsTest, NoRoomForOneBucketPrintsTheBreakdown) {
  ExpectRefused(Budget(1 << 20, 16, (1 << 20) - 1),
                "budget_bytes 1048575 / bucket_bytes 1048576 = 0 slots (budget_buckets 16)");
}

TEST(ResolveSlotsTest, OptionsOutOfRangeAreNamed) {
  ExpectRefused(Budget(15, 16, 0), "bucket_bytes is 15");
  ExpectRefused(Budget((int64_t{1} << 30) + 1, 16, 0), "bucket_bytes is 1073741825");
  ExpectRefused(Budget(16, -1, 0), "budget_buckets is -1");
  ExpectRefused(Budget(16, 1, -2), "budget_bytes is -2");
  SessionOptions options;
  options.max_in_flight = 0;
  ExpectRefused(options, "max_in_flight is 0");
  options.max_in_flight = 65537;
  ExpectRefused(options, "max_in_flight is 65537");
  options = SessionOptions();
  options.timeout = absl::ZeroDuration();
  ExpectRefused(options, "timeout");
}

}  // namespace
}  // namespace sluice
