// Names of element types and of objects.
#include "storage/element_type.h"

#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "storage/object_name.h"
#include "tensor/quoted.h"
#include "tensor/utf8.h"

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

std::string WhyNot(const std::string& name) { return std::string(CheckObjectName(name).message()); }

TEST(ObjectNameTest, PlainRelativeNamesAreTaken) {
  for (const char* name : {"a", "shard-00001.bin", "train/part 1/x.npy", "..a", "a..b",
                           "caf\303\251", "model-00001-of-00002.safetensors", ".hidden"}) {
    EXPECT_TRUE(CheckObjectName(name).ok()) << name << ": " << WhyNot(name);
  }
}

TEST(ObjectNameTest, NamesThatLeadElsewhereAreRefused) {
  EXPECT_THAT(WhyNot(""), HasSubstr("is empty"));
  EXPECT_THAT(WhyNot("/etc/passwd"), HasSubstr("is absolute"));
  for (const char* name : {"..", "../x", "a/../../x", "a/..", ".", "./a", "a/./b"}) {
    EXPECT_THAT(WhyNot(name), HasSubstr("leads elsewhere")) << name;
  }
  for (const char* name : {"a//b", "a/", "http://host/x"}) {
    EXPECT_THAT(WhyNot(name), HasSubstr("empty component")) << name;
  }
  EXPECT_THAT(WhyNot("a\\..\\b"), HasSubstr("backslash"));
  EXPECT_THAT(WhyNot(std::string("a\0b", 3)), HasSubstr("control"));
  EXPECT_THAT(WhyNot("a\nb"), HasSubstr("control"));
  EXPECT_THAT(WhyNot("a\xff"), HasSubstr("UTF-8"));
  EXPECT_THAT(WhyNot(std::string(256, 'a')), HasSubstr("255"));
  EXPECT_THAT(WhyNot(std::string(1025, 'a')), HasSubstr("1024"));
}

TEST(Utf8Test, KnowsWellFormedCharacters) {
  for (const char* text :
       {"", "a", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
}

TEST(Utf8Test, RefusesOverlongFormsSurrogatesAndPieces) {
  for (const char* text : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
                           "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC2",
                           "\xE2\x82", "\xE2\x82g", "\xF0\x9F\x98", "\xFF"}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

TEST(QuotedTest, IsShortAndHarmless) {
  EXPECT_EQ(Quoted("caf\303\251"), "\"caf\303\251\"");
  EXPECT_EQ(Quoted("a\x1b[1m\n"), "\"a\\x1b[1m\\n\"");
  EXPECT_EQ(Quoted("\xff"), "\"\\xff\"");
  EXPECT_EQ(Quoted("a\u202e"), "\"a\\xe2\\x80\\xae\"");
  EXPECT_EQ(Quoted(std::string(200, 'a')), "\"" + std::string(120, 'a') + "...\"");
  EXPECT_TRUE(IsUtf8(Quoted(absl::StrCat(std::string(119, 'a'), "\303\251", "bc"))));
}

TEST(EscapedText, IsOneLineThatNoTerminalObeys) {
  EXPECT_EQ(Escaped("it's \"a\\b\" caf\303\251"), "it's \"a\\b\" caf\303\251");
  EXPECT_EQ(Escaped("a\nb\x1b[31m\x7f"), "a\\nb\\x1b[31m\\x7f");
  EXPECT_EQ(Escaped("\u0085\u009b\u202e\u2066\u2028"),
            "\\xc2\\x85\\xc2\\x9b\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xe2\\x80\\xa8");
  EXPECT_EQ(Escaped("\u00a0\u2010\u20ac\U0001f600"), "\u00a0\u2010\u20ac\U0001f600");
  EXPECT_EQ(Escaped("caf\xe9"), "caf\\xe9");
}

}  // namespace
}  // namespace sluice
