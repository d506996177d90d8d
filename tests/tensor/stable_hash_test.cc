// The hash that ranks compare: it must tell inputs apart and be the same everywhere.
#include "tensor/stable_hash.h"

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

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
