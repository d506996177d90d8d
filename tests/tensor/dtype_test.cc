// Element types: bytes, names, both spellings, and casts. And dense views of tensors.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/tensor.h"
#include "tensor/cast.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Known {
  DType dtype;
  int64_t bytes;
  absl::string_view name;
  absl::string_view safetensors;
};

constexpr Known kKnown[] = {
    {DType::kF64, 8, "f64", "F64"},
    {DType::kF32, 4, "f32", "F32"},
    {DType::kF16, 2, "f16", "F16"},
    {DType::kBF16, 2, "bf16", "BF16"},
    {DType::kF8E4M3, 1, "f8e4m3", "F8_E4M3"},
    {DType::kF8E5M2, 1, "f8e5m2", "F8_E5M2"},
    {DType::kI64, 8, "i64", "I64"},
    {DType::kI32, 4, "i32", "I32"},
    {DType::kI8, 1, "i8", "I8"},
    {DType::kU8, 1, "u8", "U8"},
    {DType::kI16, 2, "i16", "I16"},
    {DType::kU16, 2, "u16", "U16"},
    {DType::kU32, 4, "u32", "U32"},
    {DType::kU64, 8, "u64", "U64"},
    {DType::kBool, 1, "bool", "BOOL"},
    {DType::kF8E8M0, 1, "f8e8m0", "F8_E8M0"},
    {DType::kF4E2M1x2, 1, "f4e2m1x2", "F4_E2M1_X2"},
    {DType::kI4x2, 1, "i4x2", "I4_X2"},
    {DType::kF8E4M3Fnuz, 1, "f8e4m3fnuz", "F8_E4M3FNUZ"},
    {DType::kF8E5M2Fnuz, 1, "f8e5m2fnuz", "F8_E5M2FNUZ"},
    {DType::kC64, 8, "c64", "C64"},
    {DType::kC128, 16, "c128", "C128"},
};

TEST(DTypeTest, BytesAndNames) {
  std::set<absl::string_view> names;
  for (const Known& known : kKnown) {
    EXPECT_EQ(DTypeBytes(known.dtype), known.bytes) << known.name;
    EXPECT_EQ(DTypeName(known.dtype), known.name);
    names.insert(DTypeName(known.dtype));
  }
  EXPECT_EQ(names.size(), 22u);
}

// They are part of what ranks compare and of what is written down.
TEST(DTypeTest, NumbersStay) {
  for (size_t i = 0; i < std::size(kKnown); ++i) {
    EXPECT_EQ(static_cast<size_t>(kKnown[i].dtype), i) << kKnown[i].name;
  }
}

TEST(DTypeTest, BothSpellingsAreRead) {
  for (const Known& known : kKnown) {
    for (const absl::string_view text : {known.name, known.safetensors}) {
      const auto parsed = ParseDType(text);
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_EQ(*parsed, known.dtype) << text;
    }
  }
}

TEST(DTypeTest, OtherTextsAreQuoted) {
  for (const char* text : {"f33", "float32", "bf", "bf160", "Bool", "u128", "U6", "i161", "f8",
                           "F8_E4", "F4", " f32", "f32 ", "f3", "F8_E4M3FN"}) {
    const auto parsed = ParseDType(text);
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(text));
  }
  EXPECT_EQ(ParseDType("").status().code(), absl::StatusCode::kInvalidArgument);
}

bool IsKnownToFloat(DType dtype) { return dtype <= DType::kF8E5M2; }

TEST(CastTest, FloatingTypesBecomeEachOtherAndOthersStayWhatTheyAre) {
  for (const Known& from : kKnown) {
    EXPECT_EQ(IsFloating(from.dtype), IsKnownToFloat(from.dtype)) << from.name;
    for (const Known& to : kKnown) {
      const bool both_float = IsKnownToFloat(from.dtype) && IsKnownToFloat(to.dtype);
      EXPECT_EQ(CastExists(from.dtype, to.dtype), both_float || from.dtype == to.dtype)
          << from.name << " to " << to.name;
    }
  }
}

TEST(CastTest, NumbersAreReducedAndOpaqueElementsAreNot) {
  for (const auto& [dtype, bytes, name, safetensors] : kKnown) {
    EXPECT_EQ(IsOpaque(dtype), dtype > DType::kBool) << name;
    EXPECT_EQ(ReductionExists(dtype), dtype < DType::kBool) << name;
  }
}

TEST(DenseStridesTest, CountElementsPerStep) {
  EXPECT_THAT(DenseStrides({5}), ElementsAre(1));
  EXPECT_THAT(DenseStrides({3, 4}), ElementsAre(4, 1));
  EXPECT_THAT(DenseStrides({2, 3, 4, 5}), ElementsAre(60, 20, 5, 1));
  EXPECT_THAT(DenseStrides({1, 1, 7, 1}), ElementsAre(7, 7, 1, 1));
  EXPECT_THAT(DenseStrides({2, 2, 2, 2, 2, 2, 2, 2}), ElementsAre(128, 64, 32, 16, 8, 4, 2, 1));
}

TEST(DenseStridesTest, EmptyTensorsHaveStridesThatAreNotNegative) {
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{0}, {0, 4}, {4, 0}, {3, 0, 5}, {0, 0}}) {
    const std::vector<int64_t> strides = DenseStrides(shape);
    ASSERT_THAT(strides, SizeIs(shape.size()));
    for (const int64_t stride : strides) EXPECT_GE(stride, 0);
  }
  EXPECT_THAT(DenseStrides({}), IsEmpty());
}

TEST(DenseViewTest, NamesTheMemoryAndItsShape) {
  std::byte memory[48];
  const TensorView view = DenseView(memory, {3, 8}, DType::kBF16);
  EXPECT_EQ(view.data, memory);
  EXPECT_EQ(view.byte_offset, 0);
  EXPECT_THAT(view.shape, ElementsAre(3, 8));
  EXPECT_EQ(view.dtype, DType::kBF16);
  EXPECT_EQ(view.device, DeviceKind::kCpu);
  EXPECT_EQ(view.device_ordinal, 0);
  if (!view.strides.empty()) {
    EXPECT_THAT(view.strides, ElementsAre(8, 1));
  }
}

}  // namespace
}  // namespace sluice
