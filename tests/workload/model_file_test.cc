// Model files, cuts of models, and stacking of experts.
#include "workload/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ModelFile, KeepsTheOrderOfTheFileAndFindsLayers) {
  const auto model = ParseModelFile(R"({
    "__metadata__": {"format": "pt"},
    "model.norm.weight": {"shape": [8], "dtype": "F32", "data_offsets": [0, 32]},
    "model.layers.10.mlp.up_proj.weight": {"shape": [16, 8], "dtype": "BF16"},
    "model.embed_tokens.weight": {"shape": [100, 8], "dtype": "F8_E4M3"}})",
                                    {});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->tensors.size(), 3u);
  EXPECT_EQ(model->tensors[0].name, "model.norm.weight");
  EXPECT_EQ(model->tensors[0].dtype, DType::kF32);
  EXPECT_FALSE(model->tensors[0].layer.has_value());
  EXPECT_EQ(model->tensors[1].layer, 10);
  EXPECT_EQ(model->tensors[2].dtype, DType::kF8E4M3);
  EXPECT_EQ(model->layers, 11);
  EXPECT_THAT(model->notes, ElementsAre());
}

TEST(ModelFile, StacksExpertsInAnyOrder) {
  const auto model = ParseModelFile(R"({
    "layers.0.mlp.experts.1.up_proj.weight": {"shape": [6, 4], "dtype": "BF16"},
    "layers.0.mlp.experts.0.up_proj.weight": {"shape": [6, 4], "dtype": "BF16"},
    "layers.0.mlp.experts.2.up_proj.weight": {"shape": [6, 4], "dtype": "BF16"},
    "layers.0.mlp.experts.down_proj.weight": {"shape": [3, 4, 6], "dtype": "BF16"},
    "layers.0.mlp.shared_experts.up_proj.weight": {"shape": [6, 4], "dtype": "BF16"}})",
                                    {});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->tensors.size(), 3u);
  EXPECT_EQ(model->tensors[0].name, "layers.0.mlp.experts.up_proj.weight");
  EXPECT_THAT(model->tensors[0].shape, ElementsAre(3, 6, 4));
  EXPECT_TRUE(model->tensors[0].stacked_experts);
  EXPECT_TRUE(model->tensors[1].stacked_experts);
  EXPECT_FALSE(model->tensors[2].stacked_experts);
}

TEST(ModelFile, CutsLayersAndDividesDimensionsUpwards) {
  const char* text = R"({
    "layers.0.a": {"shape": [7, 128], "dtype": "BF16"},
    "layers.1.a": {"shape": [7, 128], "dtype": "BF16"},
    "layers.2.a": {"shape": [7, 128], "dtype": "BF16"},
    "norm": {"shape": [1], "dtype": "BF16"}})";
  const auto model = ParseModelFile(text, {2, 4});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->tensors.size(), 3u);
  EXPECT_EQ(model->layers, 2);
  EXPECT_THAT(model->tensors[1].shape, ElementsAre(2, 32));
  EXPECT_THAT(model->tensors[2].shape, ElementsAre(1));
}

TEST(ModelFile, ErrorsNameTheTensor) {
  const struct {
    const char* text;
    const char* named;
  } kWrong[] = {
      {"[]", "object"},
      {"{}", "without tensors"},
      {R"({"a": 1})", "a: must be an object"},
      {R"({"a": {"dtype": "BF16"}})", "a: key \"shape\""},
      {R"({"a": {"shape": [1]}})", "a: key \"dtype\""},
      {R"({"a": {"shape": [1], "dtype": "BF17"}})", "BF17"},
      {R"({"a": {"shape": [-1], "dtype": "BF16"}})", "negative"},
      {R"({"a": {"shape": [1], "dtype": "U8"}, "a": {"shape": [1], "dtype": "U8"}})", "twice"},
      {R"({"m.experts.0.w": {"shape": [1], "dtype": "U8"},
           "m.experts.2.w": {"shape": [1], "dtype": "U8"}})",
       "experts are missing"},
      {R"({"m.experts.0.w": {"shape": [1], "dtype": "U8"},
           "m.experts.1.w": {"shape": [2], "dtype": "U8"}})",
       "differs"},
  };
  for (const auto& wrong : kWrong) {
    EXPECT_THAT(ParseModelFile(wrong.text, {}).status().message(), HasSubstr(wrong.named))
        << wrong.text;
  }
  EXPECT_FALSE(ParseModelFile("{}", {-1, 1}).ok());
  EXPECT_FALSE(ParseModelFile("{}", {0, 0}).ok());
}

}  // namespace
}  // namespace sluice::bench
