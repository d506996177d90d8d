// Element types: bytes, names, and both spellings.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace sluice
