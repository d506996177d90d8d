// Which casts exist.
#include "tensor/cast.h"

#include <array>

#include "gtest/gtest.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

constexpr std::array<DType, 6> kFloating = {DType::kF64,  DType::kF32,    DType::kF16,
                                            DType::kBF16, DType::kF8E4M3, DType::kF8E5M2};
constexpr std::array<DType, 9> kIntegers = {DType::kI64, DType::kI32, DType::kI8,
                                            DType::kU8,  DType::kI16, DType::kU16,
                                            DType::kU32, DType::kU64, DType::kBool};

TEST(CastTest, FloatingTypesBecomeEachOther) {
  for (const DType from : kFloating) {
    EXPECT_TRUE(IsFloating(from));
    for (const DType to : kFloating) EXPECT_TRUE(CastExists(from, to));
  }
}

TEST(CastTest, IntegersStayWhatTheyAre) {
  for (const DType integer : kIntegers) {
    EXPECT_FALSE(IsFloating(integer));
    for (const DType other : kIntegers) EXPECT_EQ(CastExists(integer, other), integer == other);
    for (const DType floating : kFloating) {
      EXPECT_FALSE(CastExists(integer, floating));
      EXPECT_FALSE(CastExists(floating, integer));
    }
  }
}

}  // namespace
}  // namespace sluice
