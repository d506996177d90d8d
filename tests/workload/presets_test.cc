// The presets, mesh by mesh.
#include "workload/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Presets, All24FitTheirDefaultShape) {
  const auto names = PresetNames();
  ASSERT_EQ(names.size(), 24u);
  for (const std::string& name : names) {
    const auto made = MakePreset(name, {});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->id, name);
    EXPECT_EQ(made->spec.tensors.size(), 2u);
  }
}

TEST(Presets, SixthTakesItsMeshesFromTheSixthColumn) {
  PresetOptions options;
  options.shape = {64, 32, 3};
  options.tensors = 3;
  options.dtype = DType::kBF16;
  const auto made = MakePreset("etha-6-no_partial", options);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->spec.tensors.size(), 3u);
  const TensorTransfer& tensor = made->spec.tensors[2];
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
  const auto made = MakePreset("etha-2-replicate_dp", {});
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(made->spec.tensors[0].src.placements,
              ElementsAre(Placement::Replicate(), Placement::Replicate(), Placement::Replicate(),
                          Placement::Shard(1)));
}

TEST(Presets, PartialDpAddsUpOverItsSecondDimension) {
  const auto made = MakePreset("etha-5-partial_dp", {});
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(made->spec.tensors[0].src.mesh.sizes(), ElementsAre(2, 4, 1, 1));
  EXPECT_THAT(made->spec.tensors[0].src.placements,
              ElementsAre(Placement::Replicate(), Placement::Partial(ReduceOp::kSum),
                          Placement::Replicate(), Placement::Shard(1)));
}

TEST(Presets, ErrorsSayWhatThereIs) {
  EXPECT_THAT(MakePreset("etha-9-no_partial", {}).status().message(),
              HasSubstr("etha-8-partial_dp"));
  PresetOptions flat;
  flat.shape = {16};
  EXPECT_THAT(MakePreset("etha-1-no_partial", flat).status().message(), HasSubstr("--shape"));
  PresetOptions none;
  none.tensors = 0;
  EXPECT_THAT(MakePreset("etha-1-no_partial", none).status().message(), HasSubstr("--tensors"));
}

}  // namespace
}  // namespace sluice::bench
