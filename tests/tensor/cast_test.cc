// Which casts exist.
#include "tensor/cast.h"

#include <array>

#include "gtest/gtest.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

constexpr std::array<DType, 6> kFloating = {DType::kF64,  DType::kF32,    DType::kF16,
                                            DType::kBF16, DType::kF8E4M3, DType::kF8E5M2};
constexpr std::array<DType, 16> kOthers = {
    DType::kI64,        DType::kI32,        DType::kI8,       DType::kU8,
    DType::kI16,        DType::kU16,        DType::kU32,      DType::kU64,
    DType::kBool,       DType::kF8E8M0,     DType::kF4E2M1x2, DType::kI4x2,
    DType::kF8E4M3Fnuz, DType::kF8E5M2Fnuz, DType::kC64,      DType::kC128};

TEST(CastTest, FloatingTypesBecomeEachOther) {
  for (const DType from : kFloating) {
    EXPECT_TRUE(IsFloating(from));
    for (const DType to : kFloating) EXPECT_TRUE(CastExists(from, to));
  }
}

TEST(CastTest, OthersStayWhatTheyAre) {
  for (const DType kept : kOthers) {
    EXPECT_FALSE(IsFloating(kept));
    for (const DType other : kOthers) EXPECT_EQ(CastExists(kept, other), kept == other);
    for (const DType floating : kFloating) {
      EXPECT_FALSE(CastExists(kept, floating));
      EXPECT_FALSE(CastExists(floating, kept));
    }
  }
}

TEST(CastTest, NumbersAreReducedAndOpaqueElementsAreNot) {
  for (const DType floating : kFloating) EXPECT_TRUE(ReductionExists(floating));
  for (const DType other : kOthers) {
    EXPECT_EQ(IsOpaque(other), other > DType::kBool);
    EXPECT_EQ(ReductionExists(other), other < DType::kBool);
  }
}

}  // namespace
}  // namespace sluice
