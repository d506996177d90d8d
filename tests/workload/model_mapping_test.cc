// Layouts of model tensors on both sides.
#include "workload/model_mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelTensor Tensor(const char* name, std::vector<int64_t> shape, bool stacked = false) {
  ModelTensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  tensor.stacked_experts = stacked;
  return tensor;
}

Parallelism Side(int64_t gpus, int64_t tp, int64_t ep, int64_t pp, int64_t fsdp) {
  Parallelism side;
  side.num_gpus = gpus;
  side.tp_size = tp;
  side.ep_size = ep;
  side.pp_size = pp;
  side.fsdp_size = fsdp;
  return side;
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
    "generation": {"num_gpus": 4, "tp_size": 2, "dp_size": 2, "nodes": 1}})");
  ASSERT_TRUE(system.ok()) << system.status();
  EXPECT_THAT(system->notes, ElementsAre(HasSubstr("nodes")));
  Model model;
  model.layers = 1;
  model.tensors.push_back(Tensor("q_proj.weight", {8, 8}));
  const auto spec = MapModel(model, *system);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(spec->tensors[0].src.mesh.ranks(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(spec->tensors[0].dst.mesh.ranks(), ElementsAre(4, 5, 6, 7));
}

TEST(SystemFile, ReplicasMultiplyTheDataParallelRanksOfBothSides) {
  auto system = ParseSystemFile(R"({
    "train": {"num_gpus": 4, "pp_size": 2, "fsdp_size": 2},
    "generation": {"num_gpus": 4, "tp_size": 2, "dp_size": 2}})");
  ASSERT_TRUE(system.ok()) << system.status();
  ASSERT_TRUE(Replicate(3, &*system).ok());
  EXPECT_EQ(system->train.num_gpus, 12);
  EXPECT_EQ(system->generation.num_gpus, 12);
  EXPECT_EQ(system->generation.dp_size, 6);
  Model model;
  model.layers = 2;
  model.tensors.push_back(Tensor("q_proj.weight", {8, 8}));
  model.tensors.back().layer = 1;
  const auto spec = MapModel(model, *system);
  ASSERT_TRUE(spec.ok()) << spec.status();
  // The second of two stages: three replicas of two ranks each.
  EXPECT_THAT(spec->tensors[0].src.mesh.sizes(), ElementsAre(3, 2, 1));
  EXPECT_THAT(spec->tensors[0].src.mesh.ranks(), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(spec->tensors[0].dst.mesh.sizes(), ElementsAre(6, 1, 2));
  for (const int64_t replicas : {int64_t{0}, int64_t{-1}, int64_t{1} << 40, int64_t{20000}}) {
    EXPECT_FALSE(Replicate(replicas, &*system).ok()) << replicas;
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
