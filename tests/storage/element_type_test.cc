// Names and sizes of the element types of files.
#include "storage/element_type.h"

#include <optional>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(ElementTypeTest, EachHasNamesThatReadBack) {
  for (int i = 0; i <= static_cast<int>(ElementType::kF8E5M2Fnuz); ++i) {
    const auto type = static_cast<ElementType>(i);
    EXPECT_EQ(*ParseElementType(ElementName(type)), type);
    EXPECT_EQ(*ParseElementType(SafetensorsName(type)), type);
    EXPECT_EQ(*ParseSafetensorsName(SafetensorsName(type)), type);
    if (!NpyDescr(type).empty()) {
      EXPECT_EQ(*ParseNpyDescr(NpyDescr(type)), type);
    }
  }
}

TEST(ElementTypeTest, SizesAreThoseOfTheFormat) {
  EXPECT_EQ(ElementBytes(*ParseSafetensorsName("BOOL")), 1);
  EXPECT_EQ(ElementBytes(*ParseSafetensorsName("F8_E5M2")), 1);
  EXPECT_EQ(ElementBytes(*ParseSafetensorsName("BF16")), 2);
  EXPECT_EQ(ElementBytes(*ParseSafetensorsName("I16")), 2);
  EXPECT_EQ(ElementBytes(*ParseSafetensorsName("U32")), 4);
  EXPECT_EQ(ElementBytes(*ParseSafetensorsName("U64")), 8);
  EXPECT_EQ(ElementBytes(*ParseSafetensorsName("C64")), 8);
}

TEST(ElementTypeTest, AllDTypesAreAmongThem) {
  const std::set<DType> in_no_file = {DType::kF4E2M1x2, DType::kI4x2, DType::kC128};
  for (int i = 0; i <= static_cast<int>(DType::kC128); ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::optional<ElementType> type = ElementTypeOf(dtype);
    ASSERT_EQ(type.has_value(), in_no_file.count(dtype) == 0) << DTypeName(dtype);
    if (!type) continue;
    EXPECT_EQ(DTypeOf(*type), dtype);
    EXPECT_EQ(ElementBytes(*type), DTypeBytes(dtype));
    EXPECT_EQ(*ParseDType(SafetensorsName(*type)), dtype);
  }
}

TEST(ElementTypeTest, UnknownNamesAreQuoted) {
  EXPECT_THAT(std::string(ParseElementType("f128").status().message()), HasSubstr("\"f128\""));
  EXPECT_FALSE(ParseSafetensorsName("f32").ok());
  EXPECT_FALSE(ParseSafetensorsName("F4").ok());
}

TEST(ElementTypeTest, NpyTypesOfOneByteHaveNoOrder) {
  EXPECT_EQ(*ParseNpyDescr("<u1"), ElementType::kU8);
  EXPECT_EQ(*ParseNpyDescr(">i1"), ElementType::kI8);
  EXPECT_THAT(std::string(ParseNpyDescr(">f4").status().message()), HasSubstr("big-endian"));
  EXPECT_THAT(std::string(ParseNpyDescr("|O").status().message()), HasSubstr("Python objects"));
  for (const char* descr : {"<U2", "|S3", "|V2", "<f16", "<m8[ns]", "", "<", "f4"}) {
    EXPECT_FALSE(ParseNpyDescr(descr).ok()) << descr;
  }
}

}  // namespace
}  // namespace sluice
