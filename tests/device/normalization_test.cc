// Normalizations against the oracle: every value of the narrow types, bits at random, any length
// and alignment, the same bits for every instruction set.
#include "device/normalization.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "device/each_target.h"
#include "device/float_oracle.h"
#include "device/plain_normalization.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

constexpr std::array<DType, 5> kSources = {DType::kU8, DType::kI16, DType::kF16, DType::kBF16,
                                           DType::kF32};
constexpr std::array<DType, 3> kDestinations = {DType::kF16, DType::kBF16, DType::kF32};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Factors {
  float scale;
  float bias;
};
constexpr std::array<Factors, 4> kFactors = {
    {{1.0f / 255, 0}, {0.01712f, -2.1179f}, {1, 0}, {-3e33f, 1e37f}}};
constexpr std::array<Factors, 7> kOddFactors = {{{0, 0},
                                                 {-0.0f, -0.0f},
                                                 {0x1p-140f, 0x1p-149f},
                                                 {kInfinity, 1},
                                                 {1, -kInfinity},
                                                 {kNaN, 0},
                                                 {2, -kNaN}}};

class NormalizationTest : public EachTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, NormalizationTest, AllTargets(), TargetNameOf);

// Normalizes all codes in one row, and says which is the first that is not as the oracle has it.
testing::AssertionResult NormalizesAsTheOracle(Normalization how,
                                               const std::vector<uint64_t>& codes) {
  const std::vector<std::byte> src = StoreCodes(codes, how.src_dtype);
  const auto bytes = static_cast<size_t>(DTypeBytes(how.dst_dtype));
  std::vector<std::byte> dst(codes.size() * bytes);
  how.src = src.data();
  how.dst = dst.data();
  how.elements = static_cast<int64_t>(codes.size());
  Normalize(how);
  for (size_t i = 0; i < codes.size(); ++i) {
    const uint64_t got = LoadCode(dst.data() + i * bytes, how.dst_dtype);
    const uint64_t wanted = NormalizedCode(how, codes[i]);
    if (got == wanted) continue;
    return testing::AssertionFailure()
           << DTypeName(how.src_dtype) << " " << std::hex << codes[i] << " became "
           << DTypeName(how.dst_dtype) << " " << got << ", not " << wanted << ", by " << how.scale
           << " and " << how.bias;
  }
  return testing::AssertionSuccess();
}

void ExpectAsTheOracle(DType from, const Factors& factors, const std::vector<uint64_t>& codes) {
  for (const DType to : kDestinations) {
    EXPECT_TRUE(NormalizesAsTheOracle({from, to, factors.scale, factors.bias}, codes));
  }
}

TEST_P(NormalizationTest, EveryValueOfTheNarrowTypes) {
  for (const DType from : {DType::kU8, DType::kI16, DType::kF16, DType::kBF16}) {
    std::vector<uint64_t> codes(size_t{1} << (8 * DTypeBytes(from)));
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = i;
    for (const Factors& factors : kFactors) ExpectAsTheOracle(from, factors, codes);
  }
}

TEST_P(NormalizationTest, BitsAtRandomByFactorsAtRandom) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<uint64_t> codes(2000);
    for (uint64_t& code : codes) code = random() >> 32;
    const Factors factors = {std::bit_cast<float>(static_cast<uint32_t>(random())),
                             std::bit_cast<float>(static_cast<uint32_t>(random()))};
    ExpectAsTheOracle(DType::kF32, factors, codes);
    for (uint64_t& code : codes) code &= 0xFFFF;
    ExpectAsTheOracle(DType::kBF16, factors, codes);
  }
}

TEST_P(NormalizationTest, OddFactorsAndValues) {
  // Of both signs: 0, the smallest number, the largest, infinity, a quiet and a signaling NaN.
  std::vector<uint64_t> codes = {0, 1, 0x7F7FFFFF, 0x7F800000, 0x7FD23456, 0x7F800001, 0x3F800000};
  const size_t positive = codes.size();
  for (size_t i = 0; i < positive; ++i) codes.push_back(codes[i] | 0x80000000);
  std::vector<uint64_t> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = i;
  for (const Factors& factors : kOddFactors) {
    ExpectAsTheOracle(DType::kF32, factors, codes);
    ExpectAsTheOracle(DType::kU8, factors, bytes);
  }
}

// The oracle could be wrong as well. The exact product is 1 + 2^-11 + 2^-24, and its rounding drops
// the last term; computed as one operation the result would be 2^-24.
TEST_P(NormalizationTest, RoundsTheProductBeforeTheSum) {
  constexpr float kValue = 1 + 0x1p-12f;
  const std::vector<float> src(37, kValue);
  std::vector<float> dst(src.size(), -1);
  Normalize({DType::kF32, DType::kF32, kValue, -(1 + 0x1p-11f),
             reinterpret_cast<const std::byte*>(src.data()),
             reinterpret_cast<std::byte*>(dst.data()), static_cast<int64_t>(src.size())});
  EXPECT_EQ(dst, std::vector<float>(src.size(), 0));
}

TEST_P(NormalizationTest, WhatImagesNeed) {
  const std::array<uint8_t, 4> src = {0, 51, 255, 128};
  std::array<float, 4> dst = {};
  Normalize({DType::kU8, DType::kF32, 1.0f / 128, -1,
             reinterpret_cast<const std::byte*>(src.data()),
             reinterpret_cast<std::byte*>(dst.data()), 4});
  EXPECT_EQ(dst, (std::array<float, 4>{-1, -0.6015625f, 0.9921875f, 0}));
}

TEST_P(NormalizationTest, EveryLengthAtAnyAlignmentStaysInItsRow) {
  constexpr std::byte kUntouched{0xA5};
  std::mt19937_64 random(3);
  std::vector<size_t> lengths = {127, 1025};
  for (size_t length = 0; length <= 70; ++length) lengths.push_back(length);
  for (const DType from : kSources) {
    for (const DType to : kDestinations) {
      const auto src_bytes = static_cast<size_t>(DTypeBytes(from));
      const auto dst_bytes = static_cast<size_t>(DTypeBytes(to));
      for (const size_t length : lengths) {
        const size_t shift = length % 5;
        std::vector<std::byte> src(shift + length * src_bytes);
        for (std::byte& byte : src) byte = static_cast<std::byte>(random());
        std::vector<std::byte> dst(shift + length * dst_bytes + 64, kUntouched);
        std::vector<std::byte> expected = dst;
        const Normalization how = {from,
                                   to,
                                   0.25f,
                                   -7,
                                   src.data() + shift,
                                   dst.data() + shift,
                                   static_cast<int64_t>(length)};
        for (size_t i = 0; i < length; ++i) {
          const uint64_t code = LoadCode(&src[shift + i * src_bytes], from);
          StoreCode(NormalizedCode(how, code), to, &expected[shift + i * dst_bytes]);
        }
        Normalize(how);
        ASSERT_TRUE(dst == expected)
            << DTypeName(from) << " to " << DTypeName(to) << ", " << length;
      }
    }
  }
}

TEST_P(NormalizationTest, PixelsAsPlainCodeHasThem) {
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(oracle::Thinned(3000)); ++seed) {
    RandomPixels random(seed);
    const std::vector<std::byte> expected = random.Expected();
    Normalize(random.how);
    ASSERT_TRUE(random.dst_memory == expected) << "seed " << seed;
  }
}

// However an item is cut: in the middle of a pixel, of a row, of what is left out.
TEST_P(NormalizationTest, PartsOfAnItemMakeTheWhole) {
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(oracle::Thinned(3000)) / 10; ++seed) {
    RandomPixels random(seed);
    const std::vector<std::byte> expected = random.Expected();
    Normalization part = random.how;
    std::mt19937_64 cuts(seed);
    for (int64_t left = random.how.elements; left > 0; left -= part.elements) {
      part.elements = 1 + static_cast<int64_t>(cuts() % static_cast<uint64_t>(left));
      Normalize(part);
      part.src += part.elements * DTypeBytes(part.src_dtype);
      part.first += part.elements;
    }
    ASSERT_TRUE(random.dst_memory == expected) << "seed " << seed;
  }
}

// Plain code could be wrong as well: two pixels of three channels, one of them left out.
TEST_P(NormalizationTest, PlanesAndCropsByHand) {
  const std::array<uint8_t, 12> src = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // 2 x 2 pixels
  ChannelFactors factors = {};
  for (const size_t c : {0, 1, 2}) factors.scale[c] = static_cast<float>(c + 1);
  factors.bias[2] = 100;
  std::array<float, 12> dst = {};
  Normalization how = {DType::kU8, DType::kF32};
  how.src = reinterpret_cast<const std::byte*>(src.data());
  how.dst = reinterpret_cast<std::byte*>(dst.data());
  how.elements = 12;
  how.factors = &factors;
  how.pixels = {.channels = 3, .width = 2, .rows = 2, .columns = 2, .planar = true};
  Normalize(how);
  EXPECT_EQ(dst, (std::array<float, 12>{1, 4, 7, 10, 4, 10, 16, 22, 109, 118, 127, 136}));
  dst = {};
  how.pixels = {.channels = 3, .width = 2, .left = 1, .rows = 2, .columns = 1, .planar = true};
  Normalize(how);
  EXPECT_EQ(dst, (std::array<float, 12>{4, 10, 10, 22, 118, 136}));
  dst = {};
  how.pixels.planar = false;
  Normalize(how);
  EXPECT_EQ(dst, (std::array<float, 12>{4, 10, 118, 10, 22, 136}));
}

TEST(PixelBoxesTest, AreAtMostFive) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const RandomPixels random(seed);
    const PixelGrid& grid = random.how.pixels;
    PixelBoxes boxes(grid, grid.KeptBefore(random.how.first),
                     grid.KeptBefore(random.how.first + random.how.elements));
    int count = 0;
    for (PixelBox box; boxes.Next(&box);) ++count;
    ASSERT_LE(count, 5) << "seed " << seed;
  }
}

TEST(NormalizationExistsTest, FromFiveTypesToThree) {
  for (int from = 0; from <= static_cast<int>(DType::kC128); ++from) {
    for (int to = 0; to <= static_cast<int>(DType::kC128); ++to) {
      const auto src = static_cast<DType>(from);
      const auto dst = static_cast<DType>(to);
      const bool expected =
          std::find(kSources.begin(), kSources.end(), src) != kSources.end() &&
          std::find(kDestinations.begin(), kDestinations.end(), dst) != kDestinations.end();
      EXPECT_EQ(NormalizationExists(src, dst), expected) << DTypeName(src) << DTypeName(dst);
    }
  }
}

TEST(NormalizationDeathTest, Arguments) {
  EXPECT_DEATH(Normalize({DType::kI64, DType::kF32}), "none between these types");
  EXPECT_DEATH(Normalize({DType::kU8, DType::kU8}), "none between these types");
  EXPECT_DEATH(Normalize({DType::kU8, DType::kF32, 1, 0, nullptr, nullptr, -1}),
               "fewer than no elements");
  const ChannelFactors factors = {};
  Normalization row = {DType::kU8, DType::kF32};
  row.factors = &factors;
  EXPECT_DEATH(Normalize(row), "factors of no channels");
}

}  // namespace
}  // namespace sluice
