// Bounds that options have to keep.
#include "session/base/option_range.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(OptionRangeTest, BoundsBelongToTheRange) {
  EXPECT_TRUE(CheckAtLeast("slots", 1, 1).ok());
  EXPECT_TRUE(CheckAtLeast("slots", kMost, 1).ok());
  EXPECT_TRUE(CheckAtLeast("slots", kLeast, kLeast).ok());
  EXPECT_TRUE(CheckAtMost("connections", kConnectionsMax, kConnectionsMax).ok());
  EXPECT_TRUE(CheckAtMost("connections", kLeast, kConnectionsMax).ok());
  EXPECT_TRUE(CheckAtMost("connections", kMost, kMost).ok());
}

TEST(OptionRangeTest, WhatIsBeyondABoundIsNamed) {
  const absl::Status below = CheckAtLeast("slots", 0, 1);
  EXPECT_EQ(below.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(below.message(), "slots is 0 but must be at least 1");
  EXPECT_EQ(CheckAtLeast("slots", kLeast, -1).message(),
            "slots is -9223372036854775808 but must be at least -1");
  const absl::Status above = CheckAtMost("connections", 4097, kConnectionsMax);
  EXPECT_EQ(above.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(above.message(), "connections is 4097 but must be at most 4096");
}

}  // namespace
}  // namespace sluice
