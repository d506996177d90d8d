// Values of elements, their sums, and the ranks that add up to one source.
#include "workload/element.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sluice/layout.h"
#include "workload/reduce.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;

struct Format {
  int exponent;
  int mantissa;
  bool finite;

  int bias() const { return (1 << (exponent - 1)) - 1; }
  uint32_t magnitudes() const { return 1u << (exponent + mantissa); }
};

// By the definition of the formats; infinity and "no number" as double's.
double ValueOf(const Format& f, uint32_t magnitude) {
  const uint32_t fraction = magnitude & ((1u << f.mantissa) - 1);
  const int power = static_cast<int>(magnitude >> f.mantissa);
  const int top = (1 << f.exponent) - 1;
  if (f.finite && magnitude == f.magnitudes() - 1) return NAN;
  if (!f.finite && power == top) {
    return fraction == 0 ? std::numeric_limits<double>::infinity() : NAN;
  }
  if (power == 0) return std::ldexp(fraction, 1 - f.bias() - f.mantissa);
  return std::ldexp(fraction + (1u << f.mantissa), power - f.bias() - f.mantissa);
}

template <typename Codec>
struct Named {
  static const Format kFormat;
};
template <>
const Format Named<F16>::kFormat = {5, 10, false};
template <>
const Format Named<BF16>::kFormat = {8, 7, false};
template <>
const Format Named<F8E4M3>::kFormat = {4, 3, true};
template <>
const Format Named<F8E5M2>::kFormat = {5, 2, false};

template <typename Codec>
class SmallFloatTest : public testing::Test {};
using Codecs = testing::Types<F16, BF16, F8E4M3, F8E5M2>;
TYPED_TEST_SUITE(SmallFloatTest, Codecs);

template <typename Codec>
typename Codec::Unit Negative(uint32_t magnitude) {
  return static_cast<typename Codec::Unit>(magnitude | Named<Codec>::kFormat.magnitudes());
}

TYPED_TEST(SmallFloatTest, EveryPatternHasItsValueAndComesBack) {
  using Unit = typename TypeParam::Unit;
  const Format& format = Named<TypeParam>::kFormat;
  for (uint32_t magnitude = 0; magnitude < format.magnitudes(); ++magnitude) {
    const auto unit = static_cast<Unit>(magnitude);
    const double value = ValueOf(format, magnitude);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(TypeParam::Load(unit))) << magnitude;
      ASSERT_TRUE(std::isnan(TypeParam::Load(TypeParam::Store(TypeParam::Load(unit)))));
      continue;
    }
    ASSERT_EQ(static_cast<double>(TypeParam::Load(unit)), value) << magnitude;
    ASSERT_EQ(static_cast<double>(TypeParam::Load(Negative<TypeParam>(magnitude))), -value);
    if (std::isinf(value)) continue;
    ASSERT_EQ(TypeParam::Store(static_cast<float>(value)), unit) << magnitude;
    ASSERT_EQ(TypeParam::Store(value), unit) << magnitude;
    ASSERT_EQ(TypeParam::Store(-value), Negative<TypeParam>(magnitude)) << magnitude;
  }
}

// Between each two neighbours: below, at and above the middle.
TYPED_TEST(SmallFloatTest, RoundsToNearestEven) {
  const Format& format = Named<TypeParam>::kFormat;
  for (uint32_t low = 0; std::isfinite(ValueOf(format, low + 1)); ++low) {
    const double middle = (ValueOf(format, low) + ValueOf(format, low + 1)) / 2;
    const uint32_t even = low % 2 == 0 ? low : low + 1;
    ASSERT_EQ(TypeParam::Store(middle), even) << low;
    ASSERT_EQ(TypeParam::Store(std::nextafter(middle, 0.0)), low) << low;
    ASSERT_EQ(TypeParam::Store(std::nextafter(middle, INFINITY)), low + 1) << low;
    const auto narrow = static_cast<float>(middle);  // exact, but for some of bf16's subnormals
    if (static_cast<double>(narrow) != middle) continue;
    ASSERT_EQ(TypeParam::Store(narrow), even) << low;
    ASSERT_EQ(TypeParam::Store(std::nextafter(narrow, 0.0F)), low) << low;
    ASSERT_EQ(TypeParam::Store(std::nextafter(narrow, INFINITY)), low + 1) << low;
  }
}

TYPED_TEST(SmallFloatTest, OverflowsHalfAStepPastTheLargest) {
  const Format& format = Named<TypeParam>::kFormat;
  uint32_t largest = 0;
  while (std::isfinite(ValueOf(format, largest + 1))) ++largest;
  const double step = ValueOf(format, largest) - ValueOf(format, largest - 1);
  const double edge = ValueOf(format, largest) + step / 2;
  const bool tie_stays = largest % 2 == 0;
  EXPECT_EQ(TypeParam::Store(std::nextafter(edge, 0.0)), largest);
  for (const double beyond :
       {tie_stays ? std::nextafter(edge, INFINITY) : edge, 1e30, 1e300, double{INFINITY}}) {
    if (beyond < edge) continue;  // bf16 goes further than 1e30
    const float read = TypeParam::Load(TypeParam::Store(beyond));
    EXPECT_EQ(read, format.finite ? ValueOf(format, largest) : INFINITY) << beyond;
    EXPECT_EQ(TypeParam::Load(TypeParam::Store(-beyond)), -read);
  }
  EXPECT_TRUE(std::isnan(TypeParam::Load(TypeParam::Store(NAN))));
  EXPECT_TRUE(std::isnan(TypeParam::Load(TypeParam::Store(-double{NAN}))));
}

TEST(Element, KnownPatterns) {
  EXPECT_EQ(F16::Store(1.0F), 0x3c00);
  EXPECT_EQ(BF16::Store(-2.0F), 0xc000);
  EXPECT_EQ(F8E4M3::Store(448.0F), 0x7e);
  EXPECT_EQ(F8E4M3::Store(464.0F), 0x7e);  // a tie
  EXPECT_EQ(F8E4M3::Store(465.0F), 0x7e);
  EXPECT_EQ(F8E5M2::Store(57344.0F), 0x7b);
  EXPECT_EQ(F8E5M2::Store(61440.0F), 0x7c);  // a tie
}

// The first stretch after reducing.
template <typename T>
std::vector<T> Reduced(DType dtype, const std::vector<ReduceStep>& steps,
                       std::vector<std::vector<T>> stretches) {
  std::vector<std::byte*> pointers;
  for (auto& stretch : stretches) pointers.push_back(reinterpret_cast<std::byte*>(stretch.data()));
  ReduceInPlace(steps, dtype, static_cast<int64_t>(stretches[0].size()), pointers);
  return stretches[0];
}

TEST(Reduce, HasFiveOperations) {
  const std::vector<std::vector<int64_t>> in = {{1, -7}, {5, 2}, {-9, 3}};
  EXPECT_THAT(Reduced(DType::kI64, {{ReduceOp::kSum, 3}}, in), ElementsAre(-3, -2));
  EXPECT_THAT(Reduced(DType::kI64, {{ReduceOp::kMax, 3}}, in), ElementsAre(5, 3));
  EXPECT_THAT(Reduced(DType::kI64, {{ReduceOp::kMin, 3}}, in), ElementsAre(-9, -7));
  EXPECT_THAT(Reduced(DType::kI64, {{ReduceOp::kProduct, 3}}, in), ElementsAre(-45, -42));
  EXPECT_THAT(Reduced(DType::kI64, {{ReduceOp::kAvg, 3}}, in), ElementsAre(-1, 0)) << "truncates";
  EXPECT_THAT(Reduced<double>(DType::kF64, {{ReduceOp::kAvg, 2}}, {{1.0}, {2.0}}),
              ElementsAre(1.5));
}

TEST(Reduce, TakesDimensionsLeftToRight) {
  // Mesh (2, 3), the first dimension counts fastest: pairs are added, then the largest sum wins.
  const std::vector<std::vector<int32_t>> in = {{1}, {2}, {10}, {-20}, {3}, {4}};
  EXPECT_THAT(Reduced(DType::kI32, {{ReduceOp::kSum, 2}, {ReduceOp::kMax, 3}}, in), ElementsAre(7));
  // Mesh (3, 2): of each three the largest, then their sum.
  EXPECT_THAT(Reduced(DType::kI32, {{ReduceOp::kMax, 3}, {ReduceOp::kSum, 2}}, in),
              ElementsAre(10 + 4));
  // Averages of averages, each rounded.
  EXPECT_THAT(Reduced<int32_t>(DType::kI32, {{ReduceOp::kAvg, 2}, {ReduceOp::kAvg, 2}},
                               {{1}, {2}, {2}, {3}}),
              ElementsAre((1 + 2) / 2));
}

TEST(Reduce, RoundsEveryStepToTheDType) {
  // In bf16, 256 + 1 is 256: twice that is not 258.
  const uint16_t one = BF16::Store(1.0F);
  EXPECT_THAT(
      Reduced<uint16_t>(DType::kBF16, {{ReduceOp::kSum, 3}}, {{BF16::Store(256.0F)}, {one}, {one}}),
      ElementsAre(BF16::Store(256.0F)));
  EXPECT_THAT(Reduced<float>(DType::kF32, {{ReduceOp::kSum, 3}}, {{16777216.0F}, {1.0F}, {1.0F}}),
              ElementsAre(16777216.0F));
}

TEST(Reduce, IntegersWrap) {
  EXPECT_THAT(Reduced<int8_t>(DType::kI8, {{ReduceOp::kSum, 2}}, {{100}, {100}}), ElementsAre(-56));
  EXPECT_THAT(Reduced<uint8_t>(DType::kU8, {{ReduceOp::kProduct, 2}}, {{250}, {2}}),
              ElementsAre(244));
  constexpr int64_t kLarge = int64_t{1} << 62;
  EXPECT_THAT(Reduced<int64_t>(DType::kI64, {{ReduceOp::kSum, 2}}, {{kLarge}, {kLarge}}),
              ElementsAre(std::numeric_limits<int64_t>::min()));
}

TEST(Reduce, UnsignedNumbersHaveNoSign) {
  constexpr uint64_t kLarge = uint64_t{1} << 63;
  const std::vector<std::vector<uint64_t>> in = {{kLarge}, {2}};
  EXPECT_THAT(Reduced(DType::kU64, {{ReduceOp::kMax, 2}}, in), ElementsAre(kLarge));
  EXPECT_THAT(Reduced(DType::kU64, {{ReduceOp::kMin, 2}}, in), ElementsAre(2));
  EXPECT_THAT(Reduced(DType::kU64, {{ReduceOp::kAvg, 2}}, in), ElementsAre(kLarge / 2 + 1));
  EXPECT_THAT(Reduced<uint16_t>(DType::kU16, {{ReduceOp::kSum, 2}}, {{65535}, {2}}),
              ElementsAre(1));
  EXPECT_THAT(Reduced<uint32_t>(DType::kU32, {{ReduceOp::kMax, 2}}, {{0x80000000}, {1}}),
              ElementsAre(0x80000000));
  EXPECT_THAT(Reduced<int16_t>(DType::kI16, {{ReduceOp::kAvg, 2}}, {{-7}, {0}}), ElementsAre(-3));
}

TEST(Reduce, OneContributionIsTheResult) {
  EXPECT_THAT(Reduced<float>(DType::kF32, {}, {{3.0F}}), ElementsAre(3.0F));
  EXPECT_THAT(Reduced<float>(DType::kF32, {{ReduceOp::kAvg, 1}}, {{3.0F}}), ElementsAre(3.0F));
}

TEST(Convert, ExistsBetweenFloatsAndToItself) {
  EXPECT_TRUE(CanConvert(DType::kF8E4M3, DType::kF64));
  EXPECT_TRUE(CanConvert(DType::kI32, DType::kI32));
  EXPECT_FALSE(CanConvert(DType::kI32, DType::kI64));
  EXPECT_FALSE(CanConvert(DType::kF32, DType::kI32));
  EXPECT_FALSE(CanConvert(DType::kU8, DType::kF16));
  EXPECT_FALSE(CanConvert(DType::kBool, DType::kU8));
}

TEST(Convert, RoundsOnce) {
  // Just above the middle of two bf16 values; by way of f32 it would become the middle and go down.
  const double wide = 1.0 + 1.0 / 256 + 1.0 / (int64_t{1} << 40);
  uint16_t narrow = 0;
  ConvertElements(DType::kF64, reinterpret_cast<const std::byte*>(&wide), 1, DType::kBF16,
                  reinterpret_cast<std::byte*>(&narrow));
  EXPECT_EQ(narrow, BF16::Store(1.0F + 1.0F / 128));
  double back = 0;
  ConvertElements(DType::kBF16, reinterpret_cast<const std::byte*>(&narrow), 1, DType::kF64,
                  reinterpret_cast<std::byte*>(&back));
  EXPECT_EQ(back, 1.0 + 1.0 / 128);
}

TEST(SourceGroups, SortsDimensionsByWhatTheyDo) {
  // Coordinates (replica, shard, contribution), row-major.
  const SourceGroups groups(Layout::Parse("2,2,2@70,1-5,60,7:R,S(0),P(max)").value());
  EXPECT_THAT(groups.steps(), ElementsAre(ReduceStep{ReduceOp::kMax, 2}));
  EXPECT_EQ(groups.contributions(), 2u);
  EXPECT_THAT(groups.bases(), ElementsAre(0, 2));
  EXPECT_THAT(groups.Holders(0, 0), ElementsAre(70, 4));
  EXPECT_THAT(groups.Holders(0, 1), ElementsAre(1, 5));
  EXPECT_THAT(groups.Holders(2, 0), ElementsAre(2, 60));
  EXPECT_EQ(groups.LowestHolder(0, 0), 4);
  EXPECT_EQ(groups.BaseOf(7), 2);
  EXPECT_EQ(groups.ContributionOf(7), 1u);
  EXPECT_EQ(groups.BaseOf(4), 0);
  EXPECT_EQ(groups.ContributionOf(4), 0u);
}

TEST(SourceGroups, TheFirstPartialDimensionCountsFastest) {
  const SourceGroups groups(Layout::Parse("2,3:P(sum),P(min)").value());
  EXPECT_THAT(groups.steps(),
              ElementsAre(ReduceStep{ReduceOp::kSum, 2}, ReduceStep{ReduceOp::kMin, 3}));
  std::vector<int> order;
  for (size_t i = 0; i < groups.contributions(); ++i) order.push_back(groups.LowestHolder(0, i));
  EXPECT_THAT(order, ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(groups.ContributionOf(4), 3u);
}

TEST(SourceGroups, NeighboursWithOneOpCountAsInTheMesh) {
  const SourceGroups groups(Layout::Parse("2,2,2:P(sum),P(sum),P(max)").value());
  EXPECT_THAT(groups.steps(),
              ElementsAre(ReduceStep{ReduceOp::kSum, 4}, ReduceStep{ReduceOp::kMax, 2}));
  std::vector<int> order;
  for (size_t i = 0; i < groups.contributions(); ++i) order.push_back(groups.LowestHolder(0, i));
  EXPECT_THAT(order, ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_EQ(groups.ContributionOf(4), 2u);
  const SourceGroups apart(Layout::Parse("2,2:P(avg),P(avg)").value());
  EXPECT_THAT(apart.steps(),
              ElementsAre(ReduceStep{ReduceOp::kAvg, 2}, ReduceStep{ReduceOp::kAvg, 2}));
  EXPECT_EQ(apart.LowestHolder(0, 1), 2);
}

TEST(SourceGroups, WithoutPartialThereIsOneContribution) {
  const SourceGroups groups(Layout::Parse("2,2:S(0),S(0)").value());
  EXPECT_EQ(groups.contributions(), 1u);
  EXPECT_THAT(groups.bases(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(groups.Holders(3, 0), ElementsAre(3));
}

}  // namespace
}  // namespace sluice::bench
