// The small floats against their definition: sign, power of two, fraction; nearest, ties to even.
#include "workload/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace sluice::bench {
namespace {

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

}  // namespace
}  // namespace sluice::bench
