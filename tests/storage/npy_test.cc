// Reading and writing .npy headers.
#include "storage/format/npy.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "storage/bytes_of.h"

namespace sluice {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace): bytes with NULs
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An object as numpy writes it: 128 bytes of header, padded with blanks.
std::string Object(const std::string& dict, size_t data_bytes, char version = 1) {
  const size_t text_at = version == 1 ? 10 : 12;
  std::string object = "\223NUMPY"s + version + '\0';
  object += static_cast<char>(128 - text_at);
  object.resize(text_at, '\0');
  object += dict;
  object.resize(127, ' ');
  return object + "\n" + std::string(data_bytes, 'x');
}

absl::StatusOr<NpyHeader> Parse(const std::string& object) {
  return ParseNpyHeader(BytesOf(object), static_cast<int64_t>(object.size()));
}

std::string WhyNot(const std::string& dict, size_t data_bytes = 0) {
  return std::string(Parse(Object(dict, data_bytes)).status().message());
}

TEST(NpyTest, ReadsWhatNumpyWrote) {
  const std::string written =
      "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
      "                                                          \012"
      "\000\000\000\000\000\000\200\077\000\000\000@\000\000@@\000\000\200@\000\000\240@"s;
  EXPECT_EQ(*NpyHeaderBytes(BytesOf(written).subspan(0, 12), -1), 128);
  EXPECT_EQ(*NpyHeaderText(ElementType::kF32, {2, 3}), written.substr(0, 128));
  const auto header = Parse(written).value();
  EXPECT_EQ(header.type, ElementType::kF32);
  EXPECT_THAT(header.shape, ElementsAre(2, 3));
  EXPECT_EQ(header.data_begin, 128);
  EXPECT_EQ(header.object_bytes, 152);
}

TEST(NpyTest, ReadsVersionsTwoAndThree) {
  const auto second = Parse(
                          "\223NUMPY\002\000t\000\000\000{'descr': '<i8', 'fortran_order': False, "
                          "'shape': (1, 2), }"
                          "                                                        \012"
                          "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"s)
                          .value();
  EXPECT_EQ(second.type, ElementType::kI64);
  EXPECT_EQ(second.object_bytes, 144);
  const auto third =
      Parse(Object("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", 8, 3)).value();
  EXPECT_THAT(third.shape, ElementsAre(2));
}

TEST(NpyTest, ReadsTheLiteralHoweverItIsSpelled) {
  for (const char* dict :
       {"{'descr':'|u1','fortran_order':False,'shape':(3,)}",
        "{\"shape\" : ( 3 , ) , \"fortran_order\" : True , \"descr\" : \"|u1\" , }",
        " {'shape': (3L,), 'descr': '|u1', 'fortran_order': False}"}) {
    const auto header = Parse(Object(dict, 3)).value();
    EXPECT_THAT(header.shape, ElementsAre(3));
  }
  const auto scalar =
      Parse(Object("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 8)).value();
  EXPECT_THAT(scalar.shape, IsEmpty());
}

TEST(NpyTest, ShortObjectsAreDataLoss) {
  const std::string whole =
      Object("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24);
  for (const size_t bytes : {0, 5, 9, 11, 12, 127, 128, 151}) {
    EXPECT_EQ(Parse(whole.substr(0, bytes)).status().code(), absl::StatusCode::kDataLoss) << bytes;
  }
  EXPECT_EQ(Parse(whole + "x").status().code(), absl::StatusCode::kInvalidArgument);
  const auto part = ParseNpyHeader(BytesOf(whole).subspan(0, 128), -1).value();
  EXPECT_EQ(part.object_bytes, 152);
}

TEST(NpyTest, RefusesOtherFormatsAndVersions) {
  const std::string dict = "{'descr': '|u1', 'fortran_order': False, 'shape': (0,), }";
  EXPECT_THAT(std::string(Parse("PK\003\004 a zip file").status().message()),
              HasSubstr("not a .npy object"));
  EXPECT_THAT(std::string(Parse(Object(dict, 0, 4)).status().message()),
              HasSubstr("version is 4.0"));
  EXPECT_THAT(std::string(Parse(Object(dict, 0, 0)).status().message()),
              HasSubstr("version is 0.0"));
  const std::string long_header = "\223NUMPY\002\000\377\377\377\377"s;
  EXPECT_THAT(std::string(NpyHeaderBytes(BytesOf(long_header), -1).status().message()),
              HasSubstr("longer than the limit of 1048576"));
}

struct Refusal {
  const char* dict;
  const char* why;
};

TEST(NpyTest, RefusesWhatItCannotRead) {
  const Refusal refusals[] = {
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "\">f4\" is big-endian"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "Python objects"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "structures"},
      {"{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }", "not a number"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", "Fortran order"},
      {"{'fortran_order': False, 'shape': (1,), }", "there is no 'descr'"},
      {"{'descr': '<f4', 'shape': (1,), }", "there is no 'fortran_order'"},
      {"{'descr': '<f4', 'fortran_order': False, }", "there is no 'shape'"},
      {"{'descr': '<f4', 'descr': '<f8', }", "'descr' is there twice"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", "unknown key \"x\""},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", "True or False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3), }", "not a tuple"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': 3, }", "there should be '('"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "there should be a size"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 2), }", "',' or ')'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (,), }", "there should be a size"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "there should be the end"},
      {"{'descr': '<f4' 'fortran_order': False}", "',' or '}'"},
      {"{'descr': '<f4\", }", "a plain string"},
      {"{'de\\x73cr': '<f4', }", "a plain string"},
      {"{descr: '<f4'}", "there should be a string"},
      {"[]", "there should be '{'"},
      {"", "there should be '{', not the end"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), ", "there should be a string"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1), }",
       "more than 8 dimensions"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775808,), }",
       "more than 63 bits"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
       "more bytes than 63 bits"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807,), }",
       "more bytes than 63 bits"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(WhyNot(refusal.dict), HasSubstr(refusal.why)) << refusal.dict;
  }
}

TEST(NpyTest, WritesWhatItReads) {
  const std::vector<std::vector<int64_t>> shapes = {{}, {5}, {2, 0, 3}, {1, 2, 3, 4, 5, 6, 7, 8}};
  for (const auto& shape : shapes) {
    for (const int64_t alignment : {64, 4096}) {
      const auto text = NpyHeaderText(ElementType::kF16, shape, alignment).value();
      EXPECT_EQ(static_cast<int64_t>(text.size()), alignment == 64 ? 128 : 4096);
      EXPECT_EQ(text.back(), '\n');
      const auto header = ParseNpyHeader(BytesOf(text), -1).value();
      EXPECT_EQ(header.type, ElementType::kF16);
      EXPECT_EQ(header.shape, shape);
      EXPECT_EQ(header.data_begin, static_cast<int64_t>(text.size()));
    }
  }
}

TEST(NpyTest, RefusesToWriteWhatNumpyDoesNotHave) {
  EXPECT_THAT(std::string(NpyHeaderText(ElementType::kBF16, {1}).status().message()),
              HasSubstr("cannot hold bf16"));
  EXPECT_FALSE(NpyHeaderText(ElementType::kU8, {-1}).ok());
  EXPECT_FALSE(NpyHeaderText(ElementType::kU8, {1, 1, 1, 1, 1, 1, 1, 1, 1}).ok());
  EXPECT_FALSE(NpyHeaderText(ElementType::kF64, {int64_t{1} << 60}).ok());
  EXPECT_FALSE(NpyHeaderText(ElementType::kU8, {1}, 131072).ok());
}

}  // namespace
}  // namespace sluice
