// Numbers, JSON, layouts and presets as the command line and files have them.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "main/own_folder.h"
#include "workload/json_input.h"
#include "workload/numbers.h"
#include "workload/presets.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseBytes, ReadsPlainNumbersAndPowersOf1024) {
  EXPECT_EQ(*ParseBytes("0"), 0);
  EXPECT_EQ(*ParseBytes("65536"), 65536);
  EXPECT_EQ(*ParseBytes("64K"), 64 << 10);
  EXPECT_EQ(*ParseBytes("8M"), 8 << 20);
  EXPECT_EQ(*ParseBytes("8MiB"), 8 << 20);
  EXPECT_EQ(*ParseBytes(" 1g "), int64_t{1} << 30);
  EXPECT_EQ(*ParseBytes("1.5K"), 1536);
  EXPECT_EQ(*ParseBytes("9223372036854775807"), INT64_MAX);
}

TEST(ParseBytes, RefusesWhatIsNotASizeOrDoesNotFit) {
  for (const char* text : {"", "M", "-1", "1X", "0x10", "1.3", "1 2", "1e3", "nan", "8MM"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
  for (const char* text : {"9223372036854775808", "8388608T", "99999999999.5T"}) {
    EXPECT_THAT(ParseBytes(text).status().message(), HasSubstr("do not fit")) << text;
  }
}

TEST(BytesName, PicksTheUnit) {
  EXPECT_EQ(BytesName(12), "12 B");
  EXPECT_EQ(BytesName(8 << 20), "8 MiB");
  EXPECT_EQ(BytesName((int64_t{3} << 30) / 2), "1.5 GiB");
}

std::string Nested(size_t depth, char open, char close) {
  return std::string(depth, open) + std::string(depth, close);
}

TEST(ParseJson, RefusesWhatIsNestedDeeply) {
  EXPECT_TRUE(ParseJson(Nested(64, '[', ']')).ok());
  for (const size_t depth : {65, 200'000}) {
    EXPECT_THAT(ParseJson(Nested(depth, '[', ']')).status().message(), HasSubstr("more than 64"));
    EXPECT_THAT(ParseJson(std::string(depth, '[')).status().message(), HasSubstr("more than 64"));
    std::string objects;
    for (size_t i = 0; i < depth; ++i) absl::StrAppend(&objects, "{\"a\":");
    EXPECT_THAT(ParseJson(objects).status().message(), HasSubstr("more than 64"));
  }
}

TEST(ParseJson, ErrorsAreShortAndWholeCharacters) {
  std::string text = "{\"shape\": \"";
  for (int i = 0; i < 500; ++i) text += "\u00e9";
  const auto json = ParseJson(text + "\"}").value();
  std::vector<int64_t> shape;
  const std::string message(Read(json, "shape", &shape).message());
  EXPECT_LT(message.size(), 150u);
  EXPECT_THAT(message, HasSubstr("\u00e9..."));
  EXPECT_THAT(ParseJson(R"({"\u0007": 1, "\u0007": 2})").status().message(), HasSubstr("\\x07"));
}

TEST(ReadFile, RefusesWhatIsTooLarge) {
  const std::string path = InOwnFolder("too_large.json");
  std::ofstream(path) << "{}";
  EXPECT_EQ(ReadFile(path).value(), "{}");
  std::filesystem::resize_file(path, kFileBytesMax + 1);
  EXPECT_THAT(ReadFile(path).status().message(), HasSubstr("more than 64 MiB"));
  std::filesystem::remove(path);
  EXPECT_THAT(ReadFile("/dev/zero").status().message(), HasSubstr("more than 64 MiB"));
}

TEST(Presets, All24FitTheirDefaultShape) {
  const auto names = PresetNames();
  ASSERT_EQ(names.size(), 24u);
  for (const std::string& name : names) {
    const auto made = MakePreset(name, {}).value();
    EXPECT_EQ(made.id, name);
    EXPECT_EQ(made.spec.tensors.size(), 2u);
  }
}

TEST(Presets, SixthTakesItsMeshesFromTheSixthColumn) {
  const PresetOptions options = {.shape = {64, 32, 3}, .tensors = 3, .dtype = DType::kBF16};
  const auto made = MakePreset("etha-6-no_partial", options).value();
  ASSERT_EQ(made.spec.tensors.size(), 3u);
  const TensorTransfer& tensor = made.spec.tensors[2];
  EXPECT_THAT(tensor.shape, ElementsAre(64, 32, 3));
  EXPECT_EQ(tensor.dst_dtype, DType::kBF16);
  EXPECT_THAT(tensor.src.mesh.sizes(), ElementsAre(4, 1, 1, 2));
  EXPECT_THAT(tensor.src.mesh.ranks(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(tensor.src.placements, ElementsAre(Placement::Replicate(), Placement::Shard(0),
                                                 Placement::Replicate(), Placement::Shard(1)));
  EXPECT_THAT(tensor.dst.mesh.sizes(), ElementsAre(2, 1, 1, 4));
  EXPECT_THAT(tensor.dst.mesh.ranks(), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(tensor.dst.placements,
              ElementsAre(Placement::Replicate(), Placement::Replicate(),
                          Placement::StridedShard(0, 4), Placement::Shard(0)));
}

TEST(Presets, ReplicateDpReplicatesItsSecondDimension) {
  const auto made = MakePreset("etha-2-replicate_dp", {}).value();
  EXPECT_THAT(made.spec.tensors[0].src.placements,
              ElementsAre(Placement::Replicate(), Placement::Replicate(), Placement::Replicate(),
                          Placement::Shard(1)));
}

TEST(Presets, PartialDpAddsUpOverItsSecondDimension) {
  const auto made = MakePreset("etha-5-partial_dp", {}).value();
  EXPECT_THAT(made.spec.tensors[0].src.mesh.sizes(), ElementsAre(2, 4, 1, 1));
  EXPECT_THAT(made.spec.tensors[0].src.placements,
              ElementsAre(Placement::Replicate(), Placement::Partial(ReduceOp::kSum),
                          Placement::Replicate(), Placement::Shard(1)));
}

TEST(Presets, ErrorsSayWhatThereIs) {
  EXPECT_THAT(MakePreset("etha-9-no_partial", {}).status().message(),
              HasSubstr("etha-8-partial_dp"));
  const PresetOptions flat = {.shape = {16}};
  EXPECT_THAT(MakePreset("etha-1-no_partial", flat).status().message(), HasSubstr("--shape"));
  const PresetOptions none = {.tensors = 0};
  EXPECT_THAT(MakePreset("etha-1-no_partial", none).status().message(), HasSubstr("--tensors"));
}

}  // namespace
}  // namespace sluice::bench
