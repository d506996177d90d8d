// Model files, and what a mapping makes of a model.
#include "workload/model_file.h"

#include <gmock/gmock.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "workload/model_mapping.h"

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
                                    {})
                         .value();
  ASSERT_EQ(model.tensors.size(), 3u);
  EXPECT_EQ(model.tensors[0].name, "model.norm.weight");
  EXPECT_EQ(model.tensors[0].dtype, DType::kF32);
  EXPECT_FALSE(model.tensors[0].layer.has_value());
  EXPECT_EQ(model.tensors[1].layer, 10);
  EXPECT_EQ(model.tensors[2].dtype, DType::kF8E4M3);
  EXPECT_EQ(model.layers, 11);
  EXPECT_THAT(model.notes, ElementsAre());
}

TEST(ModelFile, StacksExpertsInAnyOrder) {
  const auto model = ParseModelFile(R"({
    "layers.0.mlp.experts.1.up_proj.weight": {"shape": [6, 4], "dtype": "BF16"},
    "layers.0.mlp.experts.0.up_proj.weight": {"shape": [6, 4], "dtype": "BF16"},
    "layers.0.mlp.experts.2.up_proj.weight": {"shape": [6, 4], "dtype": "BF16"},
    "layers.0.mlp.experts.down_proj.weight": {"shape": [3, 4, 6], "dtype": "BF16"},
    "layers.0.mlp.shared_experts.up_proj.weight": {"shape": [6, 4], "dtype": "BF16"}})",
                                    {})
                         .value();
  ASSERT_EQ(model.tensors.size(), 3u);
  EXPECT_EQ(model.tensors[0].name, "layers.0.mlp.experts.up_proj.weight");
  EXPECT_THAT(model.tensors[0].shape, ElementsAre(3, 6, 4));
  EXPECT_TRUE(model.tensors[0].stacked_experts);
  EXPECT_TRUE(model.tensors[1].stacked_experts);
  EXPECT_FALSE(model.tensors[2].stacked_experts);
}

TEST(ModelFile, CutsLayersAndDividesDimensionsUpwards) {
  const char* text = R"({
    "layers.0.a": {"shape": [7, 128], "dtype": "BF16"},
    "layers.1.a": {"shape": [7, 128], "dtype": "BF16"},
    "layers.2.a": {"shape": [7, 128], "dtype": "BF16"},
    "norm": {"shape": [1], "dtype": "BF16"}})";
  const auto model = ParseModelFile(text, {2, 4}).value();
  ASSERT_EQ(model.tensors.size(), 3u);
  EXPECT_EQ(model.layers, 2);
  EXPECT_THAT(model.tensors[1].shape, ElementsAre(2, 32));
  EXPECT_THAT(model.tensors[2].shape, ElementsAre(1));
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

ModelTensor Tensor(const char* name, std::vector<int64_t> shape, bool stacked = false) {
  ModelTensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  tensor.stacked_experts = stacked;
  return tensor;
}

Parallelism Side(int64_t gpus, int64_t tp, int64_t ep, int64_t pp, int64_t fsdp) {
  return {.num_gpus = gpus, .tp_size = tp, .ep_size = ep, .pp_size = pp, .fsdp_size = fsdp};
}

std::string Describe(const ModelTensor& tensor, const Model& model, const Parallelism& side,
                     int first_rank = 0) {
  const auto layout = LayoutOf(tensor, model, side, first_rank);
  if (!layout.ok()) return absl::StrCat(layout.status().message());
  std::string text;
  for (const int64_t size : layout->mesh.sizes()) text += std::to_string(size) + " ";
  text += "@" + std::to_string(layout->mesh.ranks().front()) + " ";
  for (const Placement& placement : layout->placements) text += PlacementName(placement) + " ";
  return text;
}

TEST(TensorParallelOf, GoesByTheName) {
  const struct {
    const char* name;
    TensorParallel expected;
  } kNames[] = {
      {"model.layers.0.self_attn.q_proj.weight", TensorParallel::kColumn},
      {"model.layers.0.self_attn.k_proj.weight", TensorParallel::kColumn},
      {"model.layers.0.self_attn.v_proj.weight", TensorParallel::kColumn},
      {"model.layers.0.self_attn.o_proj.weight", TensorParallel::kRow},
      {"model.layers.0.mlp.gate_proj.weight", TensorParallel::kColumn},
      {"model.layers.0.mlp.up_proj.weight", TensorParallel::kColumn},
      {"model.layers.0.mlp.down_proj.weight", TensorParallel::kRow},
      {"model.layers.0.mlp.shared_experts.down_proj.weight", TensorParallel::kRow},
      {"model.layers.0.mlp.gate.weight", TensorParallel::kReplicate},
      {"model.layers.0.self_attn.q_a_proj.weight", TensorParallel::kReplicate},
      {"model.embed_tokens.weight", TensorParallel::kColumn},
      {"lm_head.weight", TensorParallel::kColumn},
  };
  for (const auto& [name, expected] : kNames) {
    EXPECT_EQ(TensorParallelOf(Tensor(name, {8, 8})), expected) << name;
  }
  EXPECT_EQ(TensorParallelOf(Tensor("a.input_layernorm.weight", {8})), TensorParallel::kReplicate);
  EXPECT_EQ(TensorParallelOf(Tensor("a.q_proj.bias", {8})), TensorParallel::kReplicate);
  EXPECT_EQ(TensorParallelOf(Tensor("a.experts.up_proj.weight", {4, 8, 8}, true)),
            TensorParallel::kColumn);
}

TEST(LayoutOf, TensorParallelCutsFirstAndFsdpShardsWhatIsLeft) {
  Model model;
  model.layers = 1;
  const Parallelism side = Side(8, 2, 1, 1, 2);
  EXPECT_EQ(Describe(Tensor("q_proj.weight", {8, 8}), model, side), "2 2 2 @0 R SS(0,2) S(0) ");
  EXPECT_EQ(Describe(Tensor("o_proj.weight", {8, 8}), model, side), "2 2 2 @0 R S(0) S(1) ");
  EXPECT_EQ(Describe(Tensor("norm.weight", {8}), model, side), "2 2 2 @0 R S(0) R ");
}

TEST(LayoutOf, DegreesOfOneReplicate) {
  Model model;
  model.layers = 1;
  EXPECT_EQ(Describe(Tensor("q_proj.weight", {8, 8}), model, Side(4, 1, 1, 1, 4)),
            "1 4 1 @0 R S(0) R ");
  EXPECT_EQ(Describe(Tensor("q_proj.weight", {8, 8}), model, Side(4, 2, 1, 1, 1), 4),
            "2 1 2 @4 R R S(0) ");
}

TEST(LayoutOf, ExpertsLieOverEpOrAsTheirWeightOneDimensionFurther) {
  Model model;
  model.layers = 1;
  const ModelTensor up = Tensor("experts.up_proj.weight", {8, 6, 4}, true);
  const ModelTensor down = Tensor("experts.down_proj.weight", {8, 4, 6}, true);
  EXPECT_EQ(Describe(up, model, Side(8, 2, 4, 1, 1)), "2 4 @0 R S(0) ");
  EXPECT_EQ(Describe(up, model, Side(8, 2, 1, 1, 1)), "4 1 2 @0 R R S(1) ");
  EXPECT_EQ(Describe(down, model, Side(8, 2, 1, 1, 2)), "2 2 2 @0 R S(0) S(2) ");
}

TEST(LayoutOf, LayersGoToStagesInContiguousBlocks) {
  Model model;
  model.layers = 5;
  const Parallelism side = Side(8, 2, 1, 4, 1);  // blocks of 2, 2, 1 and none
  ModelTensor tensor = Tensor("q_proj.weight", {8, 8});
  const char* kFirstRank[] = {"@100", "@100", "@102", "@102", "@104"};
  for (int layer = 0; layer < 5; ++layer) {
    tensor.layer = layer;
    EXPECT_THAT(Describe(tensor, model, side, 100), HasSubstr(kFirstRank[layer])) << layer;
  }
  EXPECT_THAT(Describe(Tensor("model.embed_tokens.weight", {8, 8}), model, side), HasSubstr("@0 "));
  EXPECT_THAT(Describe(Tensor("lm_head.weight", {8, 8}), model, side), HasSubstr("@6 "));
  EXPECT_THAT(Describe(Tensor("model.norm.weight", {8}), model, side), HasSubstr("@6 "));
}

TEST(SystemFile, ReadsBothSidesAndMapsThemOneAfterTheOther) {
  const auto system = ParseSystemFile(R"({
    "train": {"num_gpus": 4, "tp_size": 1, "cp_size": 1, "ep_size": 1, "pp_size": 1,
              "fsdp_size": 4, "dp_size": 1},
    "generation": {"num_gpus": 4, "tp_size": 2, "dp_size": 2, "nodes": 1}})")
                          .value();
  EXPECT_THAT(system.notes, ElementsAre(HasSubstr("nodes")));
  Model model;
  model.layers = 1;
  model.tensors.push_back(Tensor("q_proj.weight", {8, 8}));
  const auto spec = MapModel(model, system).value();
  EXPECT_THAT(spec.tensors[0].src.mesh.ranks(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(spec.tensors[0].dst.mesh.ranks(), ElementsAre(4, 5, 6, 7));
}

TEST(SystemFile, ReplicasMultiplyTheDataParallelRanksOfBothSides) {
  auto system = ParseSystemFile(R"({
    "train": {"num_gpus": 4, "pp_size": 2, "fsdp_size": 2},
    "generation": {"num_gpus": 4, "tp_size": 2, "dp_size": 2}})")
                    .value();
  ASSERT_TRUE(Replicate(3, &system).ok());
  EXPECT_EQ(system.train.num_gpus, 12);
  EXPECT_EQ(system.generation.num_gpus, 12);
  EXPECT_EQ(system.generation.dp_size, 6);
  Model model;
  model.layers = 2;
  model.tensors.push_back(Tensor("q_proj.weight", {8, 8}));
  model.tensors.back().layer = 1;
  const auto spec = MapModel(model, system).value();
  // The second of two stages: three replicas of two ranks each.
  EXPECT_THAT(spec.tensors[0].src.mesh.sizes(), ElementsAre(3, 2, 1));
  EXPECT_THAT(spec.tensors[0].src.mesh.ranks(), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(spec.tensors[0].dst.mesh.sizes(), ElementsAre(6, 1, 2));
  for (const int64_t replicas : {int64_t{0}, int64_t{-1}, int64_t{1} << 40, int64_t{20000}}) {
    EXPECT_FALSE(Replicate(replicas, &system).ok()) << replicas;
  }
}

TEST(SystemFile, ErrorsNameTheSideAndTheSizes) {
  const struct {
    const char* train;
    const char* named;
  } kWrong[] = {
      {"{}", "\"num_gpus\" is missing"},
      {R"({"num_gpus": 0})", "\"num_gpus\""},
      {R"({"num_gpus": 8, "pp_size": 3})", "pp_size 3"},
      {R"({"num_gpus": 8, "tp_size": 4, "fsdp_size": 4})", "fsdp_size * tp_size = 16"},
      {R"({"num_gpus": 8, "ep_size": 16})", "ep_size 16"},
      {R"({"num_gpus": "8"})", "\"num_gpus\""},
      {"7", "\"train\""},
  };
  for (const auto& wrong : kWrong) {
    const std::string text =
        std::string("{\"train\": ") + wrong.train + ", \"generation\": {\"num_gpus\": 1}}";
    EXPECT_THAT(ParseSystemFile(text).status().message(),
                AllOf(HasSubstr("train"), HasSubstr(wrong.named)))
        << text;
  }
  EXPECT_THAT(ParseSystemFile(R"({"train": {"num_gpus": 1}})").status().message(),
              HasSubstr("\"generation\" is missing"));
}

}  // namespace
}  // namespace sluice::bench
