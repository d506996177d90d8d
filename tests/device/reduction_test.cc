// Reductions against the oracle: all types and operations, any length and alignment.
#include "device/reduction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "device/each_target.h"
#include "device/float_oracle.h"
#include "device/reduction_codes.h"
#include "gtest/gtest.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/cast.h"

namespace sluice {
namespace {

class ReductionTest : public EachTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, ReductionTest, AllTargets(), TargetNameOf);

// The first row is where the result is to be.
testing::AssertionResult ReducesInPlace(const ReductionCase& how, const std::vector<uint64_t>& dst,
                                        const std::vector<uint64_t>& src, size_t shift) {
  return ReducesAsTheOracle(how, {dst, src}, shift, [&](const auto& sources, std::byte* row) {
    const auto elements = static_cast<int64_t>(dst.size());
    std::copy_n(sources[0], elements * DTypeBytes(how.dtype), row);
    Reduce({how.op, how.dtype, sources[1], row, elements, how.divisor});
  });
}

TEST_P(ReductionTest, EveryPairOfSpecialValues) {
  for (const DType dtype : kReducedTypes) {
    std::vector<uint64_t> dst;
    std::vector<uint64_t> src;
    const std::vector<uint64_t> codes = SpecialCodes(dtype);
    for (const uint64_t left : codes) {
      for (const uint64_t right : codes) {
        dst.push_back(left);
        src.push_back(right);
      }
    }
    for (const ReduceOp op : kReduceOps) {
      for (const int64_t divisor : {1, 3}) {
        EXPECT_TRUE(ReducesInPlace({op, dtype, divisor}, dst, src, 0));
      }
    }
  }
}

TEST_P(ReductionTest, EveryPairOfEightBits) {
  std::vector<uint64_t> dst(1 << 16);
  std::vector<uint64_t> src(dst.size());
  for (size_t i = 0; i < dst.size(); ++i) {
    dst[i] = i & 0xFF;
    src[i] = i >> 8;
  }
  for (const DType dtype : {DType::kF8E4M3, DType::kF8E5M2, DType::kI8, DType::kU8}) {
    for (const ReduceOp op : kReduceOps) {
      EXPECT_TRUE(ReducesInPlace({op, dtype, 1}, dst, src, 0));
    }
    EXPECT_TRUE(ReducesInPlace({ReduceOp::kAvg, dtype, 5}, dst, src, 0));
  }
}

TEST_P(ReductionTest, EveryLengthAtAnyAlignment) {
  std::mt19937_64 random(1);
  std::vector<size_t> lengths = {127, 129, 1023, 1024, 1025, 3001};
  for (size_t length = 0; length <= 67; ++length) lengths.push_back(length);
  for (const DType dtype : kReducedTypes) {
    for (const ReduceOp op : kReduceOps) {
      for (const size_t length : lengths) {
        const std::vector<uint64_t> dst = RandomCodes(dtype, length, random);
        const std::vector<uint64_t> src = RandomCodes(dtype, length, random);
        const int64_t divisor = op == ReduceOp::kAvg ? static_cast<int64_t>(length % 9) : 1;
        ASSERT_TRUE(ReducesInPlace({op, dtype, divisor}, dst, src, length % 11));
      }
    }
  }
}

TEST_P(ReductionTest, DividesByAnyCount) {
  std::mt19937_64 random(2);
  for (const DType dtype : kReducedTypes) {
    for (const int64_t divisor : {0, 1, 2, 7, 127, 128, 255, 256, 1000, 65536, 16777217}) {
      const std::vector<uint64_t> dst = RandomCodes(dtype, 500, random);
      const std::vector<uint64_t> src = RandomCodes(dtype, 500, random);
      EXPECT_TRUE(ReducesInPlace({ReduceOp::kAvg, dtype, divisor}, dst, src, 0));
    }
  }
}

// Written by hand: the oracle could be wrong as well.
TEST_P(ReductionTest, RoundsEachStepOfAnAverage) {
  // 2048 + 1 is halfway in f16 and becomes 2048; 2048 / 3 is 682.67, and steps are 0.5.
  std::array<uint16_t, 1> dst = {0x6800};
  const std::array<uint16_t, 1> src = {0x3C00};
  Reduce({ReduceOp::kAvg, DType::kF16, reinterpret_cast<const std::byte*>(src.data()),
          reinterpret_cast<std::byte*>(dst.data()), 1, 3});
  EXPECT_EQ(dst[0], 0x6155);  // 682.5
}

TEST_P(ReductionTest, UnsignedNumbersHaveNoSign) {
  std::array<uint64_t, 1> dst = {uint64_t{1} << 63};
  const std::array<uint64_t, 1> src = {2};
  const auto* from = reinterpret_cast<const std::byte*>(src.data());
  auto* to = reinterpret_cast<std::byte*>(dst.data());
  Reduce({ReduceOp::kMax, DType::kU64, from, to, 1, 1});
  EXPECT_EQ(dst[0], uint64_t{1} << 63);
  Reduce({ReduceOp::kAvg, DType::kU64, from, to, 1, 2});
  EXPECT_EQ(dst[0], (uint64_t{1} << 62) + 1);
  Reduce({ReduceOp::kMin, DType::kU64, from, to, 1, 1});
  EXPECT_EQ(dst[0], 2u);
}

TEST(ReductionDeathTest, ThereIsNoneOfBool) {
  std::byte one{1};
  const std::byte other{0};
  EXPECT_DEATH(Reduce({ReduceOp::kMax, DType::kBool, &other, &one, 1, 1}), "not reduced");
}

TEST_P(ReductionTest, EqualZerosKeepWhatIsThere) {
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
    std::array<float, 2> dst = {0.0f, -0.0f};
    const std::array<float, 2> src = {-0.0f, 0.0f};
    Reduce({op, DType::kF32, reinterpret_cast<const std::byte*>(src.data()),
            reinterpret_cast<std::byte*>(dst.data()), 2, 1});
    EXPECT_FALSE(std::signbit(dst[0]));
    EXPECT_TRUE(std::signbit(dst[1]));
  }
}

}  // namespace
}  // namespace sluice
