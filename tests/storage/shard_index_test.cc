// Reading and writing index.json.
#include "storage/format/shard_index.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string WhyNot(const std::string& text, const ShardIndexLimits& limits = {}) {
  return std::string(ParseShardIndex(text, limits).status().message());
}

// An index of 2 items with these objects.
std::string With(const std::string& objects) {
  return absl::StrCat(R"({"version":1,"format":"raw","items":2,"objects":[)", objects, "]}");
}

TEST(ShardIndexTest, ReadsTheExampleInItsComment) {
  const auto index = ParseShardIndex(R"({
     "version": 1, "format": "raw", "items": 5, "dtype": "bf16", "shape": [64],
     "made_by": {"x": []},
     "objects": [
       {"name": "a.bin", "bytes": 512, "items": 4, "offset": 0, "item_bytes": 128, "sha": "?"},
       {"name": "b.bin", "bytes": 512, "ranges": [[256, 128]]}]})")
                         .value();
  EXPECT_EQ(index.format, ShardFormat::kRaw);
  const Catalog& catalog = index.catalog;
  EXPECT_EQ(catalog.items(), 5);
  ASSERT_EQ(catalog.objects().size(), 2u);
  EXPECT_EQ(catalog.objects()[1].name, "b.bin");
  EXPECT_EQ(catalog.objects()[1].bytes, 512);
  EXPECT_EQ(catalog.ItemAt(3).offset, 384);
  EXPECT_EQ(catalog.ItemAt(4).offset, 256);
  EXPECT_EQ(catalog.ItemAt(4).object, 1);
  ASSERT_NE(catalog.UniformType(), nullptr);
  EXPECT_EQ(catalog.UniformType()->element, ElementType::kBF16);
  EXPECT_THAT(catalog.UniformType()->shape, ElementsAre(64));
}

TEST(ShardIndexTest, OrderOfKeysDoesNotMatter) {
  const auto index =
      ParseShardIndex(
          R"({"objects":[{"item_bytes":4,"stride":8,"offset":2,"items":2,"name":"a"}],"items":2,)"
          R"("shape":[],"dtype":"F32","format":"npy","version":1})")
          .value();
  EXPECT_EQ(index.format, ShardFormat::kNpy);
  EXPECT_EQ(index.catalog.objects()[0].bytes, -1);
  EXPECT_EQ(index.catalog.ItemAt(1).offset, 10);
  EXPECT_EQ(index.catalog.UniformType()->element, ElementType::kF32);
}

TEST(ShardIndexTest, RefusesWhatIsMissingOrNotKnown) {
  EXPECT_THAT(WhyNot("{}"), HasSubstr("there is no \"version\""));
  EXPECT_THAT(WhyNot(R"({"version":2})"), HasSubstr("version 2 is not known"));
  EXPECT_THAT(WhyNot(R"({"version":1})"), HasSubstr("there is no \"format\""));
  EXPECT_THAT(WhyNot(R"({"version":1,"format":"raw"})"), HasSubstr("there are no \"objects\""));
  EXPECT_THAT(WhyNot(R"({"version":1,"format":"raw","objects":[]})"),
              HasSubstr("there is no \"items\""));
  EXPECT_THAT(WhyNot(R"({"version":1,"format":"raw","objects":[],"items":1})"),
              HasSubstr("\"items\" is 1, but the objects have 0"));
  EXPECT_THAT(WhyNot(R"({"version":1,"format":"raw","objects":[],"items":0,"dtype":"u8"})"),
              HasSubstr("together or not at all"));
  EXPECT_THAT(WhyNot(R"({"version":1,"format":"raw","objects":[],"items":0,"shape":[1]})"),
              HasSubstr("together or not at all"));
  EXPECT_THAT(WhyNot(R"({"format":"tar"})"), HasSubstr("there is no format \"tar\""));
  EXPECT_THAT(WhyNot(R"({"dtype":"q4"})"), HasSubstr("unknown dtype \"q4\""));
}

struct Refusal {
  const char* objects;
  const char* why;
};

TEST(ShardIndexTest, RefusesObjectsThatAreWrong) {
  const Refusal refusals[] = {
      {R"({"items":2,"item_bytes":1})", "\"objects\"[0] has no \"name\""},
      {R"({"name":"a"})", "has neither \"ranges\" nor"},
      {R"({"name":"a","items":2})", "has neither \"ranges\" nor"},
      {R"({"name":"a","items":2,"item_bytes":0})", "items of no bytes"},
      {R"({"name":"a","items":2,"item_bytes":1,"ranges":[]})", "has \"ranges\" and what"},
      {R"({"name":"a","stride":1,"ranges":[]})", "has \"ranges\" and what"},
      {R"({"name":"a","ranges":[[0,1]]},{"name":"a","ranges":[[0,1]]})", "\"a\" is there twice"},
      {R"({"name":"../a","ranges":[]})", "leads elsewhere"},
      {R"({"name":"/a","ranges":[]})", "is absolute"},
      {R"({"name":"a\\b","ranges":[]})", "has a backslash"},
      {R"({"name":"a\u0000b","ranges":[]})", "control characters"},
      {R"({"name":"","ranges":[]})", "is empty"},
      {R"({"name":1,"ranges":[]})", "must be a string"},
      {R"({"name":[],"ranges":[]})", "must be a string"},
      {R"({"name":"a","name":"b","ranges":[]})", "key \"name\" appears twice"},
      {R"({"name":"a","bytes":-1,"ranges":[]})", "at least 0, not -1"},
      {R"({"name":"a","bytes":"1","ranges":[]})", "must be an integer"},
      {R"({"name":"a","bytes":[],"ranges":[]})", "must be an integer"},
      {R"({"name":"a","bytes":9223372036854775807,"ranges":[]})", "cannot have"},
      {R"({"name":"a","bytes":9223372036854775808,"ranges":[]})", "must be an integer"},
      {R"({"name":"a","bytes":10,"ranges":[[0,1],[10,1]]})", "pass its end"},
      {R"({"name":"a","bytes":10,"items":2,"item_bytes":6})", "pass its end"},
      {R"({"name":"a","bytes":10,"items":2,"item_bytes":1,"stride":10})", "pass its end"},
      {R"({"name":"a","items":2,"item_bytes":4611686018427387904})", "pass its end"},
      {R"({"name":"a","items":4611686018427387904,"item_bytes":1})", "2^48 items"},
      {R"({"name":"a","ranges":[0,1]})", "must be a list of offset and bytes"},
      {R"({"name":"a","ranges":[[0]]})", "\"ranges\"[0] must be a list of offset and bytes"},
      {R"({"name":"a","ranges":[[0,1,2]]})", "must be a list of offset and bytes"},
      {R"({"name":"a","ranges":[{}]})", "must be a list of offset and bytes"},
      {R"({"name":"a","ranges":[[0,[]]]})", "must be an integer"},
      {R"({"name":"a","ranges":[[-1,1]]})", "at least 0"},
      {R"({"name":"a","ranges":1})", "must be a list"},
      {R"({"name":"a","ranges":{}})", "must be a list"},
      {R"([])", "must be an object"},
      {R"(1)", "must be an object"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(WhyNot(With(refusal.objects)), HasSubstr(refusal.why)) << refusal.objects;
  }
}

TEST(ShardIndexTest, RefusesMembersOfTheWrongKind) {
  EXPECT_THAT(WhyNot("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(WhyNot("\"x\""), HasSubstr("must be an object"));
  EXPECT_THAT(WhyNot(R"({"version":"1"})"), HasSubstr("must be an integer"));
  EXPECT_THAT(WhyNot(R"({"items":[]})"), HasSubstr("must be an integer"));
  EXPECT_THAT(WhyNot(R"({"format":1})"), HasSubstr("must be a string"));
  EXPECT_THAT(WhyNot(R"({"dtype":{}})"), HasSubstr("must be a string"));
  EXPECT_THAT(WhyNot(R"({"objects":{}})"), HasSubstr("must be a list"));
  EXPECT_THAT(WhyNot(R"({"objects":1})"), HasSubstr("must be a list"));
  EXPECT_THAT(WhyNot(R"({"shape":1})"), HasSubstr("must be a list"));
  EXPECT_THAT(WhyNot(R"({"shape":[[]]})"), HasSubstr("must be an integer"));
  EXPECT_THAT(WhyNot(R"({"shape":[-1]})"), HasSubstr("at least 0"));
  EXPECT_THAT(WhyNot(R"({"shape":[1,1,1,1,1,1,1,1,1]})"), HasSubstr("more than 8 dimensions"));
}

TEST(ShardIndexTest, TheTypeMustFitEachItem) {
  const auto text = [](const char* shape) {
    return absl::StrCat(R"({"version":1,"format":"raw","items":2,"dtype":"f32","shape":)", shape,
                        R"(,"objects":[{"name":"a","items":2,"item_bytes":8}]})");
  };
  EXPECT_EQ(WhyNot(text("[2]")), "");
  EXPECT_EQ(WhyNot(text("[1,2,1]")), "");
  EXPECT_THAT(WhyNot(text("[3]")), HasSubstr("an item of 8 bytes is not f32 [3]"));
  EXPECT_THAT(WhyNot(text("[4294967296,4294967296]")), HasSubstr("an item of 8 bytes is not"));
}

TEST(ShardIndexTest, KeepsToTheLimits) {
  const std::string text = With(R"({"name":"a","ranges":[[0,1]]},{"name":"b","ranges":[[0,1]]})");
  EXPECT_EQ(WhyNot(text, {.objects = 2, .ranges = 2}), "");
  EXPECT_THAT(WhyNot(text, {.objects = 1}), HasSubstr("more than 1 objects"));
  EXPECT_THAT(WhyNot(text, {.ranges = 1}), HasSubstr("more than 1 ranges"));
  EXPECT_THAT(WhyNot(text, {.text_bytes = 20}), HasSubstr("limit of 20"));
}

TEST(ShardIndexTest, WritesWhatItReads) {
  Catalog catalog;
  ASSERT_TRUE(AddRawObject("a \"b\"", 40, 10, nullptr, &catalog).ok());
  ASSERT_TRUE(catalog.AddObject("ranges", -1).ok());
  ASSERT_TRUE(catalog.AddItems(1, 5, 7, 7).ok());
  ASSERT_TRUE(catalog.AddItems(2, 100, 0, 0).ok());
  ASSERT_TRUE(catalog.AddObject("none", 3).ok());
  ASSERT_TRUE(catalog.AddObject("strided", 100).ok());
  ASSERT_TRUE(catalog.AddItems(3, 10, 4, 16).ok());
  const auto text = ShardIndexText(ShardFormat::kSafetensors, catalog).value();
  EXPECT_EQ(
      text,
      "{\"version\": 1, \"format\": \"safetensors\", \"items\": 10,\n \"objects\": [\n"
      "  {\"name\": \"a \\\"b\\\"\", \"bytes\": 40, \"items\": 4, \"offset\": 0, \"item_bytes\": "
      "10},\n"
      "  {\"name\": \"ranges\", \"ranges\": [[5, 7], [100, 0], [100, 0]]},\n"
      "  {\"name\": \"none\", \"bytes\": 3, \"ranges\": []},\n"
      "  {\"name\": \"strided\", \"bytes\": 100, \"items\": 3, \"offset\": 10, \"item_bytes\": 4, "
      "\"stride\": 16}]}\n");
  const auto read = ParseShardIndex(text).value();
  EXPECT_EQ(*ShardIndexText(read.format, read.catalog), text);
}

TEST(ShardIndexTest, WritesTheTypeOfAllItems) {
  Catalog catalog;
  const ItemType type = {ElementType::kI16, {2, 3}};
  ASSERT_TRUE(AddRawObject("a", 24, 12, &type, &catalog).ok());
  EXPECT_THAT(*ShardIndexText(ShardFormat::kRaw, catalog),
              HasSubstr("\"items\": 2, \"dtype\": \"i16\", \"shape\": [2, 3],"));
  ASSERT_TRUE(AddRawObject("b", 24, 12, nullptr, &catalog).ok());
  EXPECT_THAT(*ShardIndexText(ShardFormat::kRaw, catalog), testing::Not(HasSubstr("dtype")));
}

TEST(ShardIndexTest, RefusesToWriteMoreRangesThanReadersTake) {
  Catalog catalog;
  ASSERT_TRUE(catalog.AddObject("a", -1).ok());
  ASSERT_TRUE(catalog.AddItems(INT64_C(1) << 40, 0, 8, 8).ok());
  EXPECT_TRUE(ShardIndexText(ShardFormat::kRaw, catalog).ok());
  ASSERT_TRUE(catalog.AddItems(1, 0, 8, 8).ok());
  EXPECT_THAT(std::string(ShardIndexText(ShardFormat::kRaw, catalog).status().message()),
              HasSubstr("ranges"));
}

}  // namespace
}  // namespace sluice
