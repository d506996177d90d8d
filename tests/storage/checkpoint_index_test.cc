// Reading and writing the index of a checkpoint.
#include "storage/format/checkpoint_index.h"

#include <string>

#include "gmock/gmock.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string WhyNot(const std::string& text, const CheckpointIndexLimits& limits = {}) {
  return std::string(ParseCheckpointIndex(text, limits).status().message());
}

TEST(CheckpointIndexTest, ReadsFilesAndTensorsInOrder) {
  const auto index = ParseCheckpointIndex(R"({
    "metadata": {"total_size": 16, "total_parameters": 8, "extra": {"deep": [1]}},
    "weight_map": {"w.b": "m-2.safetensors", "w.a": "m-2.safetensors", "v": "m-1.safetensors"},
    "other": [{}]})")
                         .value();
  EXPECT_EQ(index.total_bytes, 16);
  EXPECT_THAT(index.files, ElementsAre("m-1.safetensors", "m-2.safetensors"));
  ASSERT_EQ(index.tensors.size(), 3u);
  EXPECT_EQ(index.tensors[0].tensor, "v");
  EXPECT_EQ(index.tensors[0].file, 0);
  EXPECT_EQ(index.tensors[1].tensor, "w.a");
  EXPECT_EQ(index.tensors[1].file, 1);
  EXPECT_EQ(index.tensors[2].tensor, "w.b");
  EXPECT_EQ(index.tensors[2].file, 1);
}

TEST(CheckpointIndexTest, TheTotalMayBeMissingOrAWholeNumberWithAFraction) {
  EXPECT_EQ(ParseCheckpointIndex(R"({"weight_map":{}})")->total_bytes, -1);
  EXPECT_EQ(
      ParseCheckpointIndex(R"({"metadata":{"total_size":1.6e3},"weight_map":{}})")->total_bytes,
      1600);
}

TEST(CheckpointIndexTest, RefusesWhatIsWrong) {
  EXPECT_THAT(WhyNot("{}"), HasSubstr("there is no \"weight_map\""));
  EXPECT_THAT(WhyNot("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(WhyNot("1"), HasSubstr("must be an object"));
  EXPECT_THAT(WhyNot(R"({"weight_map":[]})"), HasSubstr("must be an object, not a list"));
  EXPECT_THAT(WhyNot(R"({"weight_map":"x"})"), HasSubstr("must be an object, not a string"));
  EXPECT_THAT(WhyNot(R"({"weight_map":{"a":1}})"), HasSubstr("must be a string"));
  EXPECT_THAT(WhyNot(R"({"weight_map":{"a":{}}})"), HasSubstr("must be a string"));
  EXPECT_THAT(WhyNot(R"({"weight_map":{"":"f"}})"), HasSubstr("empty name"));
  EXPECT_THAT(WhyNot(R"({"weight_map":{"a":"f","a":"g"}})"), HasSubstr("key \"a\" appears twice"));
  EXPECT_THAT(WhyNot(R"({"weight_map":{"a":"f"},"weight_map":{}})"), HasSubstr("appears twice"));
  EXPECT_THAT(WhyNot(R"({"weight_map":{},"metadata":{"total_size":-1}})"), HasSubstr("at least 0"));
  EXPECT_THAT(WhyNot(R"({"weight_map":{},"metadata":{"total_size":1.5}})"), HasSubstr("integer"));
  EXPECT_THAT(WhyNot(R"({"weight_map":{},"metadata":{"total_size":[]}})"), HasSubstr("integer"));
  EXPECT_THAT(WhyNot(R"({"weight_map":{},"metadata":[]})"), HasSubstr("must be an object"));
  EXPECT_THAT(WhyNot("{\"weight_map\""), HasSubstr("not JSON"));
}

TEST(CheckpointIndexTest, RefusesFilesElsewhere) {
  for (const char* name : {"../x", "/etc/passwd", "", "a/../b", "a\\\\b", "a\\u0000b", "."}) {
    const std::string text = std::string(R"({"weight_map":{"t":")") + name + "\"}}";
    EXPECT_THAT(WhyNot(text), HasSubstr("tensor \"t\": object name")) << name;
  }
}

TEST(CheckpointIndexTest, KeepsToTheLimits) {
  const std::string two = R"({"weight_map":{"a":"f","b":"f"}})";
  EXPECT_EQ(WhyNot(two, {.tensors = 2}), "");
  EXPECT_THAT(WhyNot(two, {.tensors = 1}), HasSubstr("more than 1 tensors"));
  EXPECT_THAT(WhyNot(two, {.text_bytes = 10}), HasSubstr("limit of 10"));
}

TEST(CheckpointIndexTest, WritesWhatItReads) {
  CheckpointIndex index;
  index.files = {"one.safetensors", "two.safetensors"};
  index.tensors = {{"z \"quoted\"", 0}, {"a", 1}};
  index.total_bytes = 12;
  const auto text = CheckpointIndexText(index).value();
  EXPECT_EQ(text,
            "{\n  \"metadata\": {\n    \"total_size\": 12\n  },\n  \"weight_map\": {\n"
            "    \"a\": \"two.safetensors\",\n"
            "    \"z \\\"quoted\\\"\": \"one.safetensors\"\n  }\n}\n");
  const auto read = ParseCheckpointIndex(text).value();
  EXPECT_EQ(*CheckpointIndexText(read), text);
  EXPECT_TRUE(ParseCheckpointIndex(*CheckpointIndexText({})).ok());
}

TEST(CheckpointIndexTest, HasTheIdAndTheTextsOfItsSave) {
  CheckpointIndex index;
  index.files = {"one.safetensors"};
  index.tensors = {{"a", 0}};
  index.save_id = "0123456789abcdef";
  index.metadata = {{"epoch", "3"}, {"a \"key\"", "\u00e9"}};
  for (const int64_t total : {-1, 4}) {
    index.total_bytes = total;
    const auto read = ParseCheckpointIndex(*CheckpointIndexText(index)).value();
    EXPECT_EQ(read.save_id, index.save_id);
    EXPECT_EQ(read.metadata, index.metadata);
    EXPECT_EQ(read.total_bytes, total);
  }
  EXPECT_EQ(ParseCheckpointIndex(R"({"weight_map":{}})")->save_id, "");
  EXPECT_THAT(WhyNot(R"({"weight_map":{},"metadata":{"sluice_save_id":1}})"), HasSubstr("string"));
}

TEST(CheckpointIndexTest, RefusesToWriteWhatNoReaderTakes) {
  EXPECT_FALSE(CheckpointIndexText({{"f"}, {{"", 0}}, 0}).ok());
  EXPECT_FALSE(CheckpointIndexText({{"f"}, {{"a", 0}, {"a", 0}}, 0}).ok());
  EXPECT_FALSE(CheckpointIndexText({{"../f"}, {{"a", 0}}, 0}).ok());
  EXPECT_FALSE(CheckpointIndexText({{"f"}, {{"\xff", 0}}, 0}).ok());
}

}  // namespace
}  // namespace sluice
