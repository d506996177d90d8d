// Whether a strided tensor overlaps itself, against the places of all its elements.
#include "session/base/self_overlap.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"

namespace sluice {
namespace {

SelfOverlap Expected(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  std::vector<int64_t> places = {0};
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<int64_t> next;
    for (const int64_t place : places) {
      for (int64_t p = 0; p < shape[d]; ++p) next.push_back(place + p * strides[d]);
    }
    places = std::move(next);
  }
  const std::set<int64_t> distinct(places.begin(), places.end());
  return distinct.size() == places.size() ? SelfOverlap::kNo : SelfOverlap::kYes;
}

TEST(SelfOverlapTest, IsExactForSmallTensors) {
  oracle::Dice dice(1);
  int overlap = 0, interleave = 0;
  constexpr int kTensors = oracle::Sampled(30000);
  for (int i = 0; i < kTensors; ++i) {
    std::vector<int64_t> shape, strides;
    const int64_t dims = dice.Between(1, 5);
    const int64_t scale = dice.Pick<int64_t>({1, 1, 7});
    int64_t span = 1;
    for (int64_t d = 0; d < dims; ++d) {
      shape.push_back(dice.Between(1, dims > 3 ? 4 : 9));
      // Some step over all others, as those of slices do; most are anything.
      const int64_t stride = dice.Chance(30) ? span : dice.Between(0, 120);
      strides.push_back(stride * scale);
      span += stride * (shape.back() - 1);
    }
    const SelfOverlap expected = Expected(shape, strides);
    ASSERT_EQ(FindSelfOverlap(shape, strides), expected)
        << "shape " << testing::PrintToString(shape) << " strides "
        << testing::PrintToString(strides);
    overlap += expected == SelfOverlap::kYes ? 1 : 0;
    std::vector<int64_t> sorted = strides;
    std::sort(sorted.begin(), sorted.end());
    interleave += expected == SelfOverlap::kNo && sorted.back() < span / 2 ? 1 : 0;
  }
  EXPECT_GT(overlap, kTensors / 10);
  EXPECT_LT(overlap, kTensors / 10 * 9);
  EXPECT_GT(interleave, kTensors / 50);
}

TEST(SelfOverlapTest, IsExactForTwoLargeDimensions) {
  // They meet where i * p == j * q: first at i == q, j == p, as p and q have no common factor.
  const int64_t p = 999'983, q = 1'000'003;
  EXPECT_EQ(FindSelfOverlap({{q, p}}, {{p, q}}), SelfOverlap::kNo);
  EXPECT_EQ(FindSelfOverlap({{q + 1, p}}, {{p, q}}), SelfOverlap::kNo);
  EXPECT_EQ(FindSelfOverlap({{q + 1, p + 1}}, {{p, q}}), SelfOverlap::kYes);
  // Also with rows inside and planes outside.
  EXPECT_EQ(FindSelfOverlap({{50, q, p, 64}}, {{int64_t{1} << 52, 64 * p, 64 * q, 1}}),
            SelfOverlap::kNo);
  EXPECT_EQ(FindSelfOverlap({{50, q + 1, p + 1, 64}}, {{int64_t{1} << 52, 64 * p, 64 * q, 1}}),
            SelfOverlap::kYes);
}

TEST(SelfOverlapTest, GivesUpOnManyLargeDimensionsThatInterleave) {
  const std::vector<int64_t> shape = {400, 400, 400, 400};
  const std::vector<int64_t> strides = {1'000'000'007'000'003, 999'999'937'000'001,
                                        999'983'000'000'007, 1'000'003'000'000'009};
  EXPECT_EQ(FindSelfOverlap(shape, strides), SelfOverlap::kUnknown);
}

}  // namespace
}  // namespace sluice
