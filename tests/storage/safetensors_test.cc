// Reading and writing safetensors headers.
#include "storage/format/safetensors.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "storage/bytes_of.h"

namespace sluice {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace): bytes with NULs
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// Written by the format's own library from numpy arrays.
const std::string& Written() {
  static const auto* const kWritten = new std::string(
      "\020\001\000\000\000\000\000\000{\"__metadata__\":{\"format\":\"np\",\"note\":"
      "\"caf\303\251\"},"
      "\"e\":{\"dtype\":\"I64\",\"shape\":[0,3],\"data_offsets\":[0,0]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
      "\"s\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[16,18]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[18,21]}}      "
      "\000\000\000\000\000\000\200\077\000\000\000@\000\000@@\000@\000\001\002"s);
  return *kWritten;
}

// An object with this header, and `data_bytes` after it.
std::string Object(const std::string& json, size_t data_bytes) {
  std::string object;
  for (int i = 0; i < 8; ++i) object += static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return object + json + std::string(data_bytes, 'x');
}

absl::StatusOr<SafetensorsHeader> Parse(const std::string& object) {
  return ParseSafetensorsHeader(BytesOf(object), static_cast<int64_t>(object.size()));
}

std::string WhyNot(const std::string& json, size_t data_bytes) {
  return std::string(Parse(Object(json, data_bytes)).status().message());
}

TEST(SafetensorsTest, ReadsWhatTheFormatsLibraryWrote) {
  EXPECT_EQ(*SafetensorsHeaderBytes(BytesOf(Written()).subspan(0, 8), -1), 280);
  const auto header = Parse(Written()).value();
  EXPECT_EQ(header.data_begin, 280);
  EXPECT_EQ(header.object_bytes, 301);
  EXPECT_THAT(header.metadata, ElementsAre(Pair("format", "np"), Pair("note", "caf\303\251")));
  ASSERT_EQ(header.tensors.size(), 4u);
  const SafetensorsTensor& e = header.tensors[0];
  const SafetensorsTensor& a = header.tensors[1];
  const SafetensorsTensor& s = header.tensors[2];
  const SafetensorsTensor& b = header.tensors[3];
  EXPECT_EQ(e.name, "e");
  EXPECT_EQ(e.type, ElementType::kI64);
  EXPECT_THAT(e.shape, ElementsAre(0, 3));
  EXPECT_EQ(e.bytes(), 0);
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.begin, 280);
  EXPECT_EQ(a.end, 296);
  EXPECT_EQ(s.name, "s");
  EXPECT_THAT(s.shape, IsEmpty());
  EXPECT_EQ(s.bytes(), 2);
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.end, 301);
}

TEST(SafetensorsTest, ReadsAnObjectWithoutTensors) {
  const auto header = Parse("\010\000\000\000\000\000\000\000{}      "s).value();
  EXPECT_THAT(header.tensors, IsEmpty());
  EXPECT_EQ(header.object_bytes, 16);
}

TEST(SafetensorsTest, SortsByOffset) {
  const auto header = Parse(Object(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                                   R"("a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})",
                                   3))
                          .value();
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[1].name, "b");
}

TEST(SafetensorsTest, TakesAnObjectOfUnknownSize) {
  const std::string first = Object(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 0);
  const auto header = ParseSafetensorsHeader(BytesOf(first), -1).value();
  EXPECT_EQ(header.object_bytes, static_cast<int64_t>(first.size()) + 2);
}

TEST(SafetensorsTest, ShortObjectsAreDataLoss) {
  const std::string& whole = Written();
  for (const int64_t bytes : {0, 7, 8, 100, 279, 280, 300}) {
    const std::string cut = whole.substr(0, static_cast<size_t>(bytes));
    EXPECT_EQ(Parse(cut).status().code(), absl::StatusCode::kDataLoss) << bytes;
  }
  // The object is whole, but not all of the header is here.
  const auto part = ParseSafetensorsHeader(BytesOf(whole).subspan(0, 100), 301);
  EXPECT_THAT(std::string(part.status().message()), HasSubstr("only 100 of"));
}

TEST(SafetensorsTest, SaysWhatElseAnObjectLooksLike) {
  const std::vector<std::pair<std::string, std::string>> others = {
      {"version https://git-lfs.github.com/spec/v1\n", "Git LFS"},
      {"<!DOCTYPE html><html>", "HTML"},
      {"PK\3\4\x14\0\0\0"s, "zip"},
      {"\x80\2}q\0(X\1"s, "pickle"},
      {"GGUF\3\0\0\0"s, "GGUF"}};
  for (const auto& [begin, likeness] : others) {
    const absl::Status status = SafetensorsHeaderBytes(BytesOf(begin), -1).status();
    EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument,
                              testing::AllOf(HasSubstr("it looks like a"), HasSubstr(likeness))));
  }
}

TEST(SafetensorsTest, HeadersHaveALimit) {
  const std::string huge = "\xff\xff\xff\xff\xff\xff\xff\xff{}"s;
  EXPECT_THAT(std::string(SafetensorsHeaderBytes(BytesOf(huge), -1).status().message()),
              HasSubstr("longer than the limit of 100000000"));
  EXPECT_FALSE(SafetensorsHeaderBytes(BytesOf(Written()), 301, {.header_bytes = 271}).ok());
  EXPECT_TRUE(SafetensorsHeaderBytes(BytesOf(Written()), 301, {.header_bytes = 272}).ok());
  const auto many = ParseSafetensorsHeader(BytesOf(Written()), 301, {.tensors = 3});
  EXPECT_THAT(std::string(many.status().message()), HasSubstr("more than 3 tensors"));
}

struct Refusal {
  const char* json;
  size_t data_bytes;
  const char* why;
};

TEST(SafetensorsTest, RefusesWhatTheFormatForbids) {
  const Refusal refusals[] = {
      {" {}", 0, "must begin with '{'"},
      {"[]", 0, "must begin with '{'"},
      {"{}x", 0, "not JSON at byte"},
      {R"({"a":1})", 0, "\"a\" must be an object"},
      {R"({"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0, "empty name"},
      {R"({"a":{"shape":[0],"data_offsets":[0,0]}})", 0, "tensor \"a\" has no \"dtype\""},
      {R"({"a":{"dtype":"U8","data_offsets":[0,0]}})", 0, "has no \"shape\""},
      {R"({"a":{"dtype":"U8","shape":[0]}})", 0, "has no \"data_offsets\""},
      {R"({"a":{"dtype":1,"shape":[0],"data_offsets":[0,0]}})", 0, "must be a string"},
      {R"({"a":{"dtype":[],"shape":[0],"data_offsets":[0,0]}})", 0, "must be a string"},
      {R"({"a":{"dtype":"U8","shape":0,"data_offsets":[0,0]}})", 0, "must be a list"},
      {R"({"a":{"dtype":"U8","shape":{},"data_offsets":[0,0]}})", 0, "must be a list"},
      {R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}})", 0, "at least 0, not -1"},
      {R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,0]}})", 0, "must be an integer"},
      {R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,0]}})", 0, "must be an integer"},
      {R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,0]}})", 0, "must be an integer"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}})", 0, "has 1 data_offsets, not 2"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})", 0, "more than 2 data_offsets"},
      {R"({"a":{"dtype":"U8","shape":[0],"shape":[0],"data_offsets":[0,0]}})", 0, "appears twice"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
       R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
       0, "key \"a\" appears twice"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}})", 2, "before its begin 2"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
       "has 4 bytes by its data_offsets, but 8 by its shape"},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
       "more bytes than 63 bits"},
      {R"({"a":{"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,0]}})", 0,
       "more bytes than 63 bits"},
      {R"({"a":{"dtype":"U8","shape":[9223372036854775807],)"
       R"("data_offsets":[0,9223372036854775807]}})",
       0, "more bytes than 63 bits"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,9223372036854775808]}})", 0,
       "must be an integer"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3, "leaves a hole"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "begins at 1, within another one"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
       2, "begins at 1, within another one"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3, "1 bytes after the last"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1, "but its tensors end at"},
      {R"({"__metadata__":{"a":1}})", 0, "must be a string"},
      {R"({"__metadata__":{"a":{}}})", 0, "must be a string"},
      {R"({"__metadata__":"x"})", 0, "must be an object"},
      {"{\"\xff\":{}}", 0, "not JSON at byte"},
      {R"({"a":{"dtype":"U8","shape":[[[[[[0]]]]]],"data_offsets":[0,0]}})", 0,
       "must be an integer"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(WhyNot(refusal.json, refusal.data_bytes), HasSubstr(refusal.why)) << refusal.json;
  }
}

struct Unreadable {
  const char* json;
  size_t data_bytes;
  const char* why;  // empty: it can be read
};

TEST(SafetensorsTest, WhatIsLegalAndUnknownConcernsItsTensorAlone) {
  const Unreadable cases[] = {
      {R"({"a":{"dtype":"F4","shape":[6],"data_offsets":[0,3]}})", 3, "unknown dtype \"F4\""},
      {R"({"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}})", 3, "\"F6_E2M3\""},
      {R"({"a":{"dtype":"F6_E3M2","shape":[4],"data_offsets":[0,3]}})", 3, "\"F6_E3M2\""},
      {R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,3],"data_offsets":[0,3]}})", 3,
       "more than 8 dimensions"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3],"x":1,"y":[[[[[{}]]]]]}})", 3, ""},
      {R"({"__metadata__":null,"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 3, ""},
  };
  for (const Unreadable& legal : cases) {
    std::string json = legal.json;
    json.pop_back();
    json += R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})";
    const auto header = Parse(Object(json, legal.data_bytes + 2));
    ASSERT_TRUE(header.ok()) << legal.json << ": " << header.status();
    EXPECT_THAT(header->metadata, IsEmpty());
    ASSERT_EQ(header->tensors.size(), 2u) << legal.json;
    EXPECT_EQ(header->tensors[0].bytes(), 3) << legal.json;
    EXPECT_EQ(header->tensors[0].unreadable.empty(), *legal.why == '\0') << legal.json;
    EXPECT_THAT(header->tensors[0].unreadable, HasSubstr(legal.why));
    EXPECT_EQ(header->tensors[1].unreadable, "");
    EXPECT_EQ(header->tensors[1].begin, header->tensors[0].end);
  }
}

std::string MakeObject(const SafetensorsLayout& layout) {
  std::string object = layout.header;
  object.resize(static_cast<size_t>(layout.object_bytes));
  return object;
}

TEST(SafetensorsLayoutTest, ReadsBackAndAlignsElements) {
  const std::vector<SafetensorsSpec> specs = {{"bytes", ElementType::kU8, {3}},
                                              {"half", ElementType::kBF16, {1, 3}},
                                              {"scalar", ElementType::kF64, {}},
                                              {"empty", ElementType::kF32, {0, 7}},
                                              {"more \"bytes\"", ElementType::kBool, {2}}};
  const auto layout = LayOutSafetensors(specs, {{"format", "pt"}, {"step", "7"}}, 4096).value();
  EXPECT_EQ(layout.header.size(), 4096u);
  const auto header = Parse(MakeObject(layout)).value();
  EXPECT_THAT(header.metadata, ElementsAre(Pair("format", "pt"), Pair("step", "7")));
  std::vector<std::string> names;
  for (const SafetensorsTensor& tensor : header.tensors) {
    names.push_back(tensor.name);
    EXPECT_EQ(tensor.begin % ElementBytes(tensor.type), 0) << tensor.name;
  }
  EXPECT_THAT(names, ElementsAre("scalar", "empty", "half", "bytes", "more \"bytes\""));
  for (size_t i = 0; i < specs.size(); ++i) EXPECT_EQ(layout.tensors[i].name, specs[i].name);
  EXPECT_EQ(layout.tensors[0].begin, 4096 + 8 + 6);
  EXPECT_EQ(layout.object_bytes, 4096 + 8 + 6 + 3 + 2);
}

TEST(SafetensorsLayoutTest, PadsToEightBytes) {
  const auto layout = LayOutSafetensors({}, {}).value();
  EXPECT_EQ(layout.header, "\010\000\000\000\000\000\000\000{}      "s);
}

TEST(SafetensorsLayoutTest, RefusesWhatNoReaderTakes) {
  const auto why_not = [](const std::vector<SafetensorsSpec>& specs,
                          const SafetensorsMetadata& metadata = {}) {
    return std::string(LayOutSafetensors(specs, metadata).status().message());
  };
  constexpr ElementType kType = ElementType::kF32;
  EXPECT_THAT(why_not({{"", kType, {1}}}), HasSubstr("empty name"));
  EXPECT_THAT(why_not({{"__metadata__", kType, {1}}}), HasSubstr("keeps for itself"));
  EXPECT_THAT(why_not({{"\xff", kType, {1}}}), HasSubstr("not UTF-8"));
  EXPECT_THAT(why_not({{"a", kType, {1}}, {"a", kType, {2}}}), HasSubstr("twice"));
  EXPECT_THAT(why_not({{"a", kType, {-1}}}), HasSubstr("negative"));
  EXPECT_THAT(why_not({{"a", kType, {1, 1, 1, 1, 1, 1, 1, 1, 1}}}), HasSubstr("8 dimensions"));
  EXPECT_THAT(why_not({{"a", kType, {int64_t{1} << 61}}}), HasSubstr("63 bits"));
  const std::vector<int64_t> large = {int64_t{1} << 60};
  EXPECT_THAT(why_not({{"a", kType, large}, {"b", kType, large}}), HasSubstr("62 bits"));
  EXPECT_THAT(why_not({}, {{"k", "1"}, {"k", "2"}}), HasSubstr("twice"));
  EXPECT_THAT(why_not({}, {{"k", "\xff"}}), HasSubstr("not UTF-8"));
}

}  // namespace
}  // namespace sluice
