// Products that may not fit. And the hash that ranks compare: it must tell inputs apart and be the
// same everywhere.
#include "tensor/checked.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tensor/stable_hash.h"

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

uint64_t HashOf(std::initializer_list<uint64_t> values) {
  StableHash hash;
  for (const uint64_t value : values) hash.Add(value);
  return hash.value();
}

uint64_t HashOfTexts(std::initializer_list<absl::string_view> texts) {
  StableHash hash;
  for (const absl::string_view text : texts) hash.AddText(text);
  return hash.value();
}

TEST(StableHashTest, EqualInputsAreEqual) {
  EXPECT_EQ(HashOf({1, 2, 3}), HashOf({1, 2, 3}));
  EXPECT_EQ(HashOfTexts({"ab", "c"}), HashOfTexts({"ab", "c"}));
}

TEST(StableHashTest, OrderCountAndBoundariesMatter) {
  const std::set<uint64_t> values = {HashOf({}),     HashOf({0}),    HashOf({0, 0}), HashOf({1}),
                                     HashOf({1, 0}), HashOf({0, 1}), HashOf({2})};
  EXPECT_EQ(values.size(), 7u);
  const std::set<uint64_t> texts = {HashOfTexts({"ab", "c"}), HashOfTexts({"a", "bc"}),
                                    HashOfTexts({"abc"}), HashOfTexts({"abc", ""}),
                                    HashOfTexts({"", "abc"})};
  EXPECT_EQ(texts.size(), 5u);
}

TEST(StableHashTest, NeighboursDoNotCollide) {
  std::set<uint64_t> values;
  for (uint64_t a = 0; a < 100; ++a) {
    for (uint64_t b = 0; b < 100; ++b) values.insert(HashOf({a, b}));
  }
  EXPECT_EQ(values.size(), 10000u);
}

// SplitMix64 from seed 0 begins with this number, in every implementation of it.
TEST(StableHashTest, FirstStepIsThePublishedSequence) {
  EXPECT_EQ(HashOf({0}), 0xe220a8397b1dcdafu);
}

}  // namespace
}  // namespace sluice
