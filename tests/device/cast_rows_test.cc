// Casts of rows against the oracle: every value of the small types, every boundary between them,
// and bits at random.
#include "device/cast_rows.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "device/each_target.h"
#include "device/float_oracle.h"
#include "gtest/gtest.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

class CastRowsTest : public EachTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, CastRowsTest, AllTargets(), TargetNameOf);

// Casts all codes in one row, and says which is the first that is not as the oracle has it.
testing::AssertionResult CastsAsTheOracle(DType from, DType to,
                                          const std::vector<uint64_t>& codes) {
  const std::vector<std::byte> src = StoreCodes(codes, from);
  const auto bytes = static_cast<size_t>(DTypeBytes(to));
  std::vector<std::byte> dst(codes.size() * bytes);
  RowCast(from, to).Cast(src.data(), dst.data(), static_cast<int64_t>(codes.size()));
  for (size_t i = 0; i < codes.size(); ++i) {
    const uint64_t got = LoadCode(dst.data() + i * bytes, to);
    const uint64_t wanted = CastCode(from, to, codes[i]);
    if (got == wanted) continue;
    return testing::AssertionFailure()
           << DTypeName(from) << " " << std::hex << codes[i] << " became " << DTypeName(to) << " "
           << got << ", not " << wanted;
  }
  return testing::AssertionSuccess();
}

uint64_t CastOne(DType from, DType to, uint64_t code) {
  std::byte src[8];
  std::byte dst[8];
  StoreCode(code, from, src);
  RowCast(from, to).Cast(src, dst, 1);
  return LoadCode(dst, to);
}

TEST_P(CastRowsTest, EveryValueOfTheSmallTypesToEveryType) {
  for (const DType from : kSmallTypes) {
    std::vector<uint64_t> codes(size_t{1} << FormatOf(from).bits());
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = i;
    for (const DType to : kFloatTypes) {
      if (to != from) {
        EXPECT_TRUE(CastsAsTheOracle(from, to, codes));
      }
    }
  }
}

// The value, its two neighbours, and all three with the other sign.
template <typename T>
void AddAround(T value, std::vector<uint64_t>* codes) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (const T near : {value, std::nextafter(value, kInfinity), std::nextafter(value, T{0})}) {
    for (const T either : {near, -near}) {
      if constexpr (sizeof(T) == 4) {
        codes->push_back(std::bit_cast<uint32_t>(either));
      } else {
        codes->push_back(std::bit_cast<uint64_t>(either));
      }
    }
  }
}

// Around each value of a type and each midpoint between two of them; the last midpoint is the one
// beyond the largest number.
template <typename T>
std::vector<uint64_t> Boundaries(DType to) {
  const FloatFormat format = FormatOf(to);
  std::vector<uint64_t> codes;
  double below = 0;
  double step = 0;
  for (uint64_t code = 1; code < format.special(); ++code) {
    const double value = Decode(to, code);
    step = value - below;
    AddAround(static_cast<T>(value), &codes);
    AddAround(static_cast<T>(below + step / 2), &codes);
    below = value;
  }
  AddAround(static_cast<T>(below + step / 2), &codes);
  return codes;
}

TEST_P(CastRowsTest, EveryBoundaryBetweenValuesOfTheSmallTypes) {
  for (const DType to : kSmallTypes) {
    EXPECT_TRUE(CastsAsTheOracle(DType::kF32, to, Boundaries<float>(to)));
    EXPECT_TRUE(CastsAsTheOracle(DType::kF64, to, Boundaries<double>(to)));
  }
}

// As PyTorch's copy_ has it, which loaders use.
TEST_P(CastRowsTest, WhatOverflowsF8E4M3BecomesItsLargestNumber) {
  const auto cast = [](DType from, double value) {
    return CastOne(from, DType::kF8E4M3, Encode(from, value));
  };
  for (const DType from : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E5M2}) {
    for (const double value : {448.0, 464.0, 466.0, 480.0, 57344.0, 1e300}) {
      EXPECT_EQ(cast(from, value), 0x7Eu) << DTypeName(from) << " " << value;
      EXPECT_EQ(cast(from, -value), 0xFEu) << DTypeName(from) << " " << -value;
    }
    const FloatFormat format = FormatOf(from);
    for (const uint64_t nan : {format.special() + 1, format.sign() - 1}) {
      EXPECT_EQ(CastOne(from, DType::kF8E4M3, nan), 0x7Fu) << DTypeName(from);
      EXPECT_EQ(CastOne(from, DType::kF8E4M3, nan | format.sign()), 0xFFu) << DTypeName(from);
    }
  }
  EXPECT_EQ(CastOne(DType::kF32, DType::kF8E5M2, 0x7F800000), 0x7Cu);
}

TEST_P(CastRowsTest, BoundariesBetweenValuesOfF32) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> codes;
  for (int i = 0; i < 50000; ++i) {
    // Small numbers one time in four: below 2^-126 the step stays the same.
    const auto bits = static_cast<uint32_t>(random()) & (i % 4 == 0 ? 0x00FFFFFFu : 0x7F7FFFFEu);
    const double value = Decode(DType::kF32, bits);
    const double next = Decode(DType::kF32, bits + 1);
    AddAround(value, &codes);
    AddAround(value + (next - value) / 2, &codes);
  }
  AddAround(0x1.ffffffp127, &codes);  // half a step beyond the largest number
  EXPECT_TRUE(CastsAsTheOracle(DType::kF64, DType::kF32, codes));
}

TEST_P(CastRowsTest, BitsAtRandom) {
  std::mt19937_64 random(2);
  for (const DType from : {DType::kF32, DType::kF64}) {
    std::vector<uint64_t> codes(200000);
    for (size_t i = 0; i < codes.size(); ++i) {
      codes[i] = from == DType::kF32 ? random() >> 32 : random();
      // Half of all doubles within the range of f32, where most is to be decided.
      if (from == DType::kF64 && i % 2 == 0) {
        codes[i] = CastCode(DType::kF32, DType::kF64, codes[i] >> 32) ^ (codes[i] & 0x1FFFFFFF);
      }
    }
    for (const DType to : kFloatTypes) {
      if (to != from) {
        EXPECT_TRUE(CastsAsTheOracle(from, to, codes));
      }
    }
  }
}

TEST_P(CastRowsTest, SpecialValues) {
  for (const DType from : {DType::kF32, DType::kF64}) {
    const FloatFormat format = FormatOf(from);
    std::vector<uint64_t> codes;
    for (const uint64_t magnitude :
         {uint64_t{0}, uint64_t{1}, format.mantissa_mask(), format.mantissa_mask() + 1,
          format.special() - 1, format.special(), format.special() + 1, format.sign() - 1,
          format.special() + format.mantissa_mask() / 2 + 1}) {
      codes.push_back(magnitude);
      codes.push_back(magnitude | format.sign());
    }
    for (const DType to : kFloatTypes) {
      if (to != from) {
        EXPECT_TRUE(CastsAsTheOracle(from, to, codes));
      }
    }
  }
}

// Written by hand: the oracle could be wrong as well.
TEST_P(CastRowsTest, WhatTheFormatsSay) {
  struct Example {
    DType to;
    float value;
    uint64_t code;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<Example> examples = {
      {DType::kF8E4M3, 1, 0x38},           {DType::kF8E4M3, 448, 0x7E},
      {DType::kF8E4M3, 464, 0x7E},         {DType::kF8E4M3, 464.5f, 0x7E},
      {DType::kF8E4M3, -kInfinity, 0xFE},  {DType::kF8E4M3, 0x1p-9f, 0x01},
      {DType::kF8E4M3, 0x1p-10f, 0x00},    {DType::kF8E4M3, 0x3p-10f, 0x02},
      {DType::kF8E5M2, 1, 0x3C},           {DType::kF8E5M2, 57344, 0x7B},
      {DType::kF8E5M2, 61439, 0x7B},       {DType::kF8E5M2, 61440, 0x7C},
      {DType::kF8E5M2, -0.0f, 0x80},       {DType::kF16, 1, 0x3C00},
      {DType::kF16, 65504, 0x7BFF},        {DType::kF16, 65519, 0x7BFF},
      {DType::kF16, 65520, 0x7C00},        {DType::kF16, 0x1p-24f, 0x0001},
      {DType::kF16, 0x1p-25f, 0x0000},     {DType::kBF16, 1, 0x3F80},
      {DType::kBF16, 1.00390625f, 0x3F80}, {DType::kBF16, 1.01171875f, 0x3F82},
      {DType::kBF16, -kInfinity, 0xFF80},  {DType::kBF16, 0x1.ffp127f, 0x7F80}};
  for (const Example& example : examples) {
    const uint64_t code = std::bit_cast<uint32_t>(example.value);
    EXPECT_EQ(CastOne(DType::kF32, example.to, code), example.code)
        << example.value << " to " << DTypeName(example.to);
  }
  // Rounding to f32 first would make these halfway, and then even.
  EXPECT_EQ(CastOne(DType::kF64, DType::kBF16, std::bit_cast<uint64_t>(0x1.01000000001p0)),
            0x3F81u);
  EXPECT_EQ(CastOne(DType::kF64, DType::kF16, std::bit_cast<uint64_t>(0x1.00200000001p0)), 0x3C01u);
  EXPECT_EQ(CastOne(DType::kF32, DType::kBF16, 0xFF800001), 0xFFC0u);  // a signaling NaN
}

TEST_P(CastRowsTest, EveryLengthAtAnyAlignmentStaysInItsRow) {
  constexpr std::byte kUntouched{0xA5};
  std::mt19937_64 random(3);
  std::vector<int64_t> lengths = {1023, 1024, 1025, 2500};
  for (int64_t length = 0; length <= 70; ++length) lengths.push_back(length);
  for (const DType from : kFloatTypes) {
    for (const DType to : kFloatTypes) {
      if (from == to) continue;
      for (const int64_t length : lengths) {
        const auto shift = static_cast<size_t>(length % 5);
        const auto size = static_cast<size_t>(length);
        const auto dst_bytes = size * static_cast<size_t>(DTypeBytes(to));
        std::vector<std::byte> src(shift + size * static_cast<size_t>(DTypeBytes(from)));
        for (std::byte& byte : src) byte = static_cast<std::byte>(random());
        std::vector<std::byte> dst(shift + dst_bytes + 64, kUntouched);
        std::vector<std::byte> expected = dst;
        for (size_t i = 0; i < size; ++i) {
          const uint64_t code =
              LoadCode(&src[shift + i * static_cast<size_t>(DTypeBytes(from))], from);
          StoreCode(CastCode(from, to, code), to,
                    &expected[shift + i * static_cast<size_t>(DTypeBytes(to))]);
        }
        RowCast(from, to).Cast(src.data() + shift, dst.data() + shift, length);
        ASSERT_TRUE(dst == expected)
            << DTypeName(from) << " to " << DTypeName(to) << ", " << length;
      }
    }
  }
}

TEST(CastRowsDeathTest, ThereIsNoCastToIntegers) {
  EXPECT_DEATH(RowCast(DType::kF32, DType::kI32), "no such cast");
  EXPECT_DEATH(RowCast(DType::kF32, DType::kF32), "no such cast");
}

}  // namespace
}  // namespace sluice
