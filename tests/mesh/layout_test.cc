// The documented examples of who owns what, literally, and what is not a layout.
#include "sluice/layout.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/brute_layout.h"
#include "oracle/make_layout.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Lists = std::vector<std::vector<int64_t>>;

Mesh MakeMesh(std::vector<int64_t> sizes, std::vector<int> ranks = {}) {
  if (ranks.empty()) {
    int64_t product = 1;
    for (const int64_t size : sizes) product *= size;
    ranks = oracle::RankRange(0, static_cast<int>(product));
  }
  auto mesh = Mesh::Create(std::move(sizes), std::move(ranks));
  EXPECT_TRUE(mesh.ok()) << mesh.status();
  return *std::move(mesh);
}

// The indices that OwnedRanges gives, written out.
Lists OwnedIndices(const Layout& layout, const std::vector<int64_t>& shape, int rank) {
  const auto owned = OwnedRanges(layout, shape, rank);
  EXPECT_TRUE(owned.ok()) << owned.status();
  Lists lists;
  for (const auto& ranges : *owned) {
    lists.emplace_back();
    for (const IndexRange& range : ranges) {
      for (int64_t i = range.begin; i < range.end; ++i) lists.back().push_back(i);
    }
  }
  return lists;
}

// What every position of the mesh owns, as flat indices.
Lists FlatByPosition(const std::vector<int64_t>& shape, std::vector<int64_t> mesh_sizes,
                     std::vector<Placement> placements, std::vector<int> order = {}) {
  const Layout layout = {MakeMesh(std::move(mesh_sizes)), std::move(placements), std::move(order)};
  Lists flat;
  for (const int rank : layout.mesh.ranks()) {
    flat.push_back(LocalTensor::Create(layout, shape, DType::kU8, rank)->GlobalIndices());
    EXPECT_EQ(flat.back(), oracle::FlatIndices(OwnedIndices(layout, shape, rank), shape));
  }
  return flat;
}

const Placement kR = Placement::Replicate();
const Placement kS0 = Placement::Shard(0);
const Placement kS1 = Placement::Shard(1);
const Placement kSs02 = Placement::StridedShard(0, 2);

TEST(LayoutExampleTest, UnevenShard) {
  EXPECT_THAT(FlatByPosition({10}, {4}, {kS0}),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6, 7, 8),
                          ElementsAre(9)));
}

// FSDP over tensor parallelism on (dp, tp) = (3, 2): 4 and 3 rows by tp, then each by dp.
TEST(LayoutExampleTest, OrderCutsTheLastDimensionFirst) {
  EXPECT_THAT(FlatByPosition({7}, {3, 2}, {kS0, kS0}, {1, 0}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(4), ElementsAre(2, 3), ElementsAre(5),
                          IsEmpty(), ElementsAre(6)));
  const Lists left_to_right = FlatByPosition({7}, {3, 2}, {kS0, kS0});
  EXPECT_EQ(FlatByPosition({7}, {3, 2}, {kS0, kS0}, {0, 1}), left_to_right);
  EXPECT_THAT(left_to_right, ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3, 4),
                                         ElementsAre(5), ElementsAre(6), IsEmpty()));
}

TEST(LayoutExampleTest, OrderOfCutsOfTwoDimensionsDoesNotMatter) {
  EXPECT_EQ(FlatByPosition({5, 7}, {2, 3}, {kS0, kS1}, {1, 0}),
            FlatByPosition({5, 7}, {2, 3}, {kS0, kS1}));
}

TEST(LayoutExampleTest, OrderVisitsEachDimensionOnce) {
  for (const std::vector<int>& order :
       {std::vector<int>{0}, {0, 0}, {1, 2}, {-1, 0}, {0, 1, 2}, {1, 1}}) {
    const Layout layout = {MakeMesh({3, 2}), {kS0, kS0}, order};
    const absl::Status status = ValidateLayout(layout, {7});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), ::testing::HasSubstr("each of the mesh's 2 dimensions once"));
    EXPECT_FALSE(IsLeftToRight(layout));
  }
  EXPECT_TRUE(IsLeftToRight({MakeMesh({3, 2}), {kS0, kS0}, {0, 1}}));
  EXPECT_TRUE(IsLeftToRight({MakeMesh({3, 2}), {kS0, kS0}, {}}));
}

TEST(LayoutExampleTest, TrailingPartsAreEmpty) {
  EXPECT_THAT(FlatByPosition({6}, {4}, {kS0}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5), IsEmpty()));
}

TEST(LayoutExampleTest, OneDimensionCutTwice) {
  EXPECT_THAT(FlatByPosition({10}, {2, 3}, {kS0, kS0}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4), ElementsAre(5, 6),
                          ElementsAre(7, 8), ElementsAre(9)));
}

TEST(LayoutExampleTest, CutTwiceIsNotCutOnce) {
  EXPECT_NE(FlatByPosition({10}, {2, 3}, {kS0, kS0}), FlatByPosition({10}, {6}, {kS0}));
}

TEST(LayoutExampleTest, StridedThenShard) {
  EXPECT_THAT(
      FlatByPosition({8}, {2, 2}, {kSs02, kS0}),
      ElementsAre(ElementsAre(0, 1), ElementsAre(4, 5), ElementsAre(2, 3), ElementsAre(6, 7)));
}

TEST(LayoutExampleTest, StridedThenShardUneven) {
  EXPECT_THAT(FlatByPosition({7}, {3, 2}, {kSs02, kS0}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(4), ElementsAre(2, 3), ElementsAre(5),
                          ElementsAre(6), IsEmpty()));
}

TEST(LayoutExampleTest, StridedAloneOwnsASetWithGaps) {
  EXPECT_THAT(FlatByPosition({8}, {2}, {kSs02}),
              ElementsAre(ElementsAre(0, 1, 4, 5), ElementsAre(2, 3, 6, 7)));
}

TEST(LayoutExampleTest, TwoDimensionsAndReplicate) {
  const std::vector<int64_t> x0z0 = {0, 1, 4, 5};
  const std::vector<int64_t> x0z1 = {8, 9};
  const std::vector<int64_t> x1z0 = {2, 3, 6, 7};
  const std::vector<int64_t> x1z1 = {10, 11};
  EXPECT_THAT(FlatByPosition({3, 4}, {2, 2, 2}, {kS1, kR, kS0}),
              ElementsAre(x0z0, x0z1, x0z0, x0z1, x1z0, x1z1, x1z0, x1z1));
}

TEST(LayoutExampleTest, PartialOwnsWhatReplicateOwns) {
  EXPECT_EQ(FlatByPosition({10}, {2, 3}, {Placement::Partial(ReduceOp::kSum), kS0}),
            FlatByPosition({10}, {2, 3}, {kR, kS0}));
}

TEST(LayoutExampleTest, CoordinatesFollowTheRankList) {
  const Layout layout = {MakeMesh({2, 2}, {7, 3, 9, 1}), {kSs02, kS0}};
  EXPECT_THAT(OwnedIndices(layout, {8}, 7), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(OwnedIndices(layout, {8}, 3), ElementsAre(ElementsAre(4, 5)));
  EXPECT_THAT(OwnedIndices(layout, {8}, 9), ElementsAre(ElementsAre(2, 3)));
  EXPECT_THAT(OwnedIndices(layout, {8}, 1), ElementsAre(ElementsAre(6, 7)));
}

TEST(LayoutTest, StrangersOwnNothing) {
  const Layout layout = {MakeMesh({2}, {3, 5}), {kS0}};
  for (const int rank : {0, 4, 6, 1000}) {
    EXPECT_THAT(OwnedIndices(layout, {8, 4}, rank), Each(IsEmpty())) << rank;
    const auto shape = LocalShape(layout, {8, 4}, rank).value();
    EXPECT_THAT(shape, AllOf(SizeIs(2), Each(0))) << rank;
  }
}

// A layout of one mesh dimension of two ranks.
absl::Status Validate(std::vector<Placement> placements, std::vector<int64_t> shape) {
  const Layout layout = {MakeMesh({2}), std::move(placements)};
  const absl::Status status = ValidateLayout(layout, shape);
  EXPECT_EQ(LocalShape(layout, shape, 0).status(), status);
  EXPECT_EQ(OwnedRanges(layout, shape, 0).status(), status);
  return status;
}

TEST(ValidateLayoutTest, TakesWhatFits) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {1}, {0}, {0, 5}, {1, 1, 1, 1, 1, 1, 1, 1}, {int64_t{1} << 40}}) {
    EXPECT_TRUE(Validate({kS0}, shape).ok());
  }
  EXPECT_TRUE(Validate({Placement::Shard(7)}, {1, 1, 1, 1, 1, 1, 1, 2}).ok());
  EXPECT_TRUE(Validate({Placement::StridedShard(0, 1)}, {8}).ok());
  EXPECT_TRUE(Validate({Placement::StridedShard(0, 5)}, {8}).ok());
}

TEST(ValidateLayoutTest, RefusesWhatDoesNotFit) {
  const int64_t big = int64_t{1} << 32;
  const int64_t largest = std::numeric_limits<int64_t>::max();
  const struct {
    const char* what;
    std::vector<Placement> placements;
    std::vector<int64_t> shape;
  } cases[] = {
      {"cut dimension that is not there", {Placement::Shard(2)}, {4, 4}},
      {"cut dimension far away", {Placement::Shard(1000000)}, {4, 4}},
      {"negative cut dimension", {Placement::Shard(-1)}, {4, 4}},
      {"strided cut that is not there", {Placement::StridedShard(2, 2)}, {4, 4}},
      {"negative strided cut", {Placement::StridedShard(-1, 2)}, {4, 4}},
      {"no pieces", {Placement::StridedShard(0, 0)}, {4, 4}},
      {"negative pieces", {Placement::StridedShard(0, -2)}, {4, 4}},
      {"no placements", {}, {4, 4}},
      {"a placement too many", {kR, kR}, {4, 4}},
      {"no dimensions", {kR}, {}},
      {"nine dimensions", {kR}, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
      {"negative size", {kR}, {4, -1}},
      {"two negative sizes", {kR}, {-4, -1}},
      {"negative beside zero", {kR}, {0, -1}},
      {"product overflows", {kR}, {big, big}},
      {"product overflows to a small number", {kR}, {(int64_t{1} << 62) + 1, 4}},
      {"product of the largest", {kR}, {largest, largest}},
  };
  for (const auto& bad : cases) {
    EXPECT_EQ(Validate(bad.placements, bad.shape).code(), absl::StatusCode::kInvalidArgument)
        << bad.what;
  }
}

// FlatByPosition looks at the global indices.
TEST(LocalTensorTest, HasMemoryForWhatTheRankOwns) {
  const Layout columns = {MakeMesh({2}), {kS1}};
  auto made = LocalTensor::Create(columns, {3, 5}, DType::kI32, 1);
  ASSERT_TRUE(made.ok()) << made.status();
  LocalTensor local = *std::move(made);
  EXPECT_THAT(local.view().shape, ElementsAre(3, 2));
  EXPECT_EQ(local.view().dtype, DType::kI32);
  EXPECT_EQ(local.view().data, local.elements<int32_t>().data());
  EXPECT_THAT(local.elements<int32_t>(), AllOf(SizeIs(6), Each(0)));

  made = LocalTensor::Create(columns, {3, 5}, DType::kI32, 2);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->elements<int32_t>(), IsEmpty());
  EXPECT_THAT(made->GlobalIndices(), IsEmpty());

  EXPECT_EQ(LocalTensor::Create(columns, {3}, DType::kI32, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ValidateLayoutTest, RefusesThePlaceholderMesh) {
  EXPECT_FALSE(ValidateLayout(Layout(), {4}).ok());
}

}  // namespace
}  // namespace sluice
