// Reductions against the oracle: all types and operations, any length and alignment.
#include "device/reduction.h"

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

constexpr size_t kGuardBytes = 64;
constexpr std::byte kUntouched{0xA5};

class ReductionTest : public EachTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, ReductionTest, AllTargets(), TargetNameOf);

// Runs `reduction` over rows of these codes that begin `shift` bytes off, and compares all bytes.
testing::AssertionResult ReducesAsTheOracle(Reduction reduction, const std::vector<uint64_t>& dst,
                                            const std::vector<uint64_t>& src, size_t shift) {
  const DType dtype = reduction.dtype;
  const auto bytes = static_cast<size_t>(DTypeBytes(dtype));
  std::vector<std::byte> to(kGuardBytes + shift + dst.size() * bytes + kGuardBytes, kUntouched);
  std::vector<std::byte> from(shift + src.size() * bytes);
  std::byte* const row = to.data() + kGuardBytes + shift;
  for (size_t i = 0; i < src.size(); ++i) {
    StoreCode(dst[i], dtype, row + i * bytes);
    StoreCode(src[i], dtype, from.data() + shift + i * bytes);
  }
  std::vector<std::byte> expected = to;
  for (size_t i = 0; i < src.size(); ++i) {
    StoreCode(ReduceCodes(reduction, dst[i], src[i]), dtype,
              expected.data() + kGuardBytes + shift + i * bytes);
  }
  reduction.src = from.data() + shift;
  reduction.dst = row;
  reduction.elements = static_cast<int64_t>(src.size());
  Reduce(reduction);
  for (size_t i = 0; i < src.size(); ++i) {
    const uint64_t got = LoadCode(row + i * bytes, dtype);
    const uint64_t wanted = ReduceCodes(reduction, dst[i], src[i]);
    if (got == wanted) continue;
    return testing::AssertionFailure()
           << DTypeName(dtype) << ", op " << static_cast<int>(reduction.op) << ", divisor "
           << reduction.divisor << ", element " << i << " of " << src.size() << ": " << std::hex
           << dst[i] << " and " << src[i] << " gave " << got << ", not " << wanted;
  }
  if (to == expected) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "wrote outside its row";
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
        EXPECT_TRUE(ReducesAsTheOracle({op, dtype, nullptr, nullptr, 0, divisor}, dst, src, 0));
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
      EXPECT_TRUE(ReducesAsTheOracle({op, dtype, nullptr, nullptr, 0, 1}, dst, src, 0));
    }
    EXPECT_TRUE(ReducesAsTheOracle({ReduceOp::kAvg, dtype, nullptr, nullptr, 0, 5}, dst, src, 0));
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
        ASSERT_TRUE(
            ReducesAsTheOracle({op, dtype, nullptr, nullptr, 0, divisor}, dst, src, length % 11));
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
      EXPECT_TRUE(
          ReducesAsTheOracle({ReduceOp::kAvg, dtype, nullptr, nullptr, 0, divisor}, dst, src, 0));
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
