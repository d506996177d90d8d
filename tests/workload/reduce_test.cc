// Reductions and casts of a few elements, worked out by hand.
#include "workload/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "workload/element.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;

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

}  // namespace
}  // namespace sluice::bench
