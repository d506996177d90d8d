// Products that may not fit.
#include "tensor/checked.h"

#include <cstdint>
#include <limits>
#include <optional>

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

TEST(CheckedProductTest, GivesTheProduct) {
  EXPECT_EQ(CheckedProduct({}), 1);
  EXPECT_EQ(CheckedProduct({3, 4, 5}), 60);
  EXPECT_EQ(CheckedProduct({kLargest, 1}), kLargest);
}

TEST(CheckedProductTest, NothingWhereItDoesNotFit) {
  EXPECT_EQ(CheckedProduct({kLargest, 2}), std::nullopt);
  EXPECT_EQ(CheckedProduct({int64_t{1} << 32, int64_t{1} << 32}), std::nullopt);
  EXPECT_EQ(CheckedProduct({(int64_t{1} << 62) + 1, 4}), std::nullopt);
  EXPECT_EQ(CheckedProduct({(int64_t{1} << 62) + 1, 4, 2}), std::nullopt);
}

TEST(CheckedProductTest, ZeroWinsOverOverflow) {
  EXPECT_EQ(CheckedProduct({kLargest, kLargest, 0}), 0);
  EXPECT_EQ(CheckedProduct({0, kLargest, kLargest}), 0);
}

TEST(CheckedProductTest, TheLimitIsAllowed) {
  EXPECT_EQ(CheckedProduct({10, 10}, 100), 100);
  EXPECT_EQ(CheckedProduct({10, 10}, 99), std::nullopt);
  EXPECT_EQ(CheckedProduct({101}, 100), std::nullopt);
}

}  // namespace
}  // namespace sluice
