// Blocks of an index space, and parts of local tensors.
#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "oracle/brute_layout.h"
#include "oracle/random_layout.h"
#include "reshard/baselines/chunks.h"
#include "sluice/layout.h"
#include "workload/local_part.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> Offsets(const Block& block) {
  std::vector<int64_t> offsets;
  block.ForEachRun([&](int64_t offset, int64_t count) {
    for (int64_t i = 0; i < count; ++i) offsets.push_back(offset + i);
  });
  return offsets;
}

TEST(Block, KnowsWhetherItIsOneStretchOrABox) {
  const Block rows({4, 6}, {{{1, 3}}, {{0, 6}}});
  EXPECT_TRUE(rows.contiguous());
  EXPECT_TRUE(rows.box());
  EXPECT_EQ(rows.first(), 6);
  EXPECT_EQ(rows.elements(), 12);
  const Block columns({4, 6}, {{{0, 4}}, {{2, 4}}});
  EXPECT_FALSE(columns.contiguous());
  EXPECT_TRUE(columns.box());
  const Block part_of_a_row({4, 6}, {{{2, 3}}, {{2, 4}}});
  EXPECT_TRUE(part_of_a_row.contiguous());
  EXPECT_EQ(part_of_a_row.first(), 14);
  const Block two_rows({4, 6}, {{{0, 1}, {2, 3}}, {{0, 6}}});
  EXPECT_FALSE(two_rows.contiguous());
  EXPECT_FALSE(two_rows.box());
  const Block joined({4, 6}, {{{0, 1}, {1, 3}}, {{0, 6}}});
  EXPECT_TRUE(joined.contiguous());
  EXPECT_TRUE(joined.box());
}

TEST(Block, WalksInRowMajorOrder) {
  EXPECT_THAT(Offsets(Block({3, 4}, {{{0, 1}, {2, 3}}, {{1, 2}, {3, 4}}})),
              ElementsAre(1, 3, 9, 11));
}

TEST(Block, PackedElementsComeBack) {
  const Block block({3, 4}, {{{0, 1}, {2, 3}}, {{1, 3}}});
  std::vector<float> local(12);
  for (size_t i = 0; i < local.size(); ++i) local[i] = static_cast<float>(i);
  std::vector<double> wire(4);
  Pack(block, DType::kF32, reinterpret_cast<const std::byte*>(local.data()), DType::kF64,
       reinterpret_cast<std::byte*>(wire.data()));
  EXPECT_THAT(wire, ElementsAre(1, 2, 9, 10));
  std::vector<float> back(12, -1);
  Unpack(block, DType::kF32, reinterpret_cast<std::byte*>(back.data()), DType::kF64,
         reinterpret_cast<const std::byte*>(wire.data()));
  EXPECT_THAT(back, ElementsAre(-1, 1, 2, -1, -1, -1, -1, -1, -1, 9, 10, -1));
}

// The global index of each local element that a block names.
oracle::IndexList Globals(const Block& block, const Layout& layout,
                          const std::vector<int64_t>& shape, int rank) {
  const oracle::IndexList owned =
      oracle::FlatIndices(*oracle::OwnedLists(layout, shape, rank), shape);
  oracle::IndexList globals;
  for (const int64_t offset : Offsets(block)) globals.push_back(owned[static_cast<size_t>(offset)]);
  return globals;
}

TEST(Intersect, IsWhatBothOwnInTheSameOrder) {
  int shared = 0;
  int disjoint = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    oracle::Dice dice(seed);
    const std::vector<int64_t> shape = oracle::RandomShape(&dice, 4, 300);
    Layout layouts[2];
    int ranks[2];
    oracle::IndexList owned[2];
    Ranges ranges[2];
    for (int side = 0; side < 2; ++side) {
      layouts[side].mesh = oracle::RandomMesh(&dice, {0, 1, 2, 3, 4, 5});
      layouts[side].placements =
          oracle::RandomPlacements(&dice, layouts[side].mesh, static_cast<int>(shape.size()));
      layouts[side].order = oracle::RandomOrder(&dice, layouts[side].mesh);
      ranks[side] = layouts[side].mesh.ranks()[0];
      owned[side] =
          oracle::FlatIndices(*oracle::OwnedLists(layouts[side], shape, ranks[side]), shape);
      ranges[side] = *OwnedRanges(layouts[side], shape, ranks[side]);
    }
    oracle::IndexList common;
    std::set_intersection(owned[0].begin(), owned[0].end(), owned[1].begin(), owned[1].end(),
                          std::back_inserter(common));
    const auto block = Intersect(ranges[0], ranges[1]);
    ASSERT_EQ(block.has_value(), !common.empty()) << seed;
    (block ? shared : disjoint) += 1;
    if (!block) continue;
    EXPECT_EQ(block->src.elements(), static_cast<int64_t>(common.size()));
    EXPECT_EQ(Globals(block->src, layouts[0], shape, ranks[0]), common) << seed;
    EXPECT_EQ(Globals(block->dst, layouts[1], shape, ranks[1]), common) << seed;
  }
  EXPECT_GT(shared, 50);
  EXPECT_GT(disjoint, 5);
}

// The flat indices that a rank owns, checking that runs follow each other without a gap.
std::vector<int64_t> Owned(const Layout& layout, const std::vector<int64_t>& shape, int rank) {
  const auto part = LocalPart::Create(layout, shape, rank);
  EXPECT_TRUE(part.ok()) << part.status();
  std::vector<int64_t> indices;
  part->ForEachRun([&](int64_t local, int64_t global, int64_t count) {
    EXPECT_EQ(local, static_cast<int64_t>(indices.size()));
    for (int64_t i = 0; i < count; ++i) indices.push_back(global + i);
  });
  EXPECT_EQ(part->elements(), static_cast<int64_t>(indices.size()));
  if (!indices.empty()) {
    EXPECT_EQ(part->first(), indices.front());
    EXPECT_EQ(part->last(), indices.back());
  }
  return indices;
}

TEST(LocalPart, HasStretchesOfEachRow) {
  const Layout columns = Layout::Parse("2,2,2:S(1),R,S(0)").value();
  EXPECT_THAT(Owned(columns, {3, 4}, 0), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(Owned(columns, {3, 4}, 3), ElementsAre(8, 9));
  EXPECT_THAT(Owned(columns, {3, 4}, 4), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(Owned(columns, {3, 4}, 7), ElementsAre(10, 11));
}

TEST(LocalPart, WholeTrailingDimensionsMakeOneRun) {
  const auto part =
      LocalPart::Create(Layout::Parse("2:S(1)").value(), std::vector<int64_t>{2, 4, 3, 5}, 1)
          .value();
  std::vector<int64_t> lengths;
  part.ForEachRun([&](int64_t, int64_t, int64_t count) { lengths.push_back(count); });
  EXPECT_THAT(lengths, ElementsAre(30, 30));
}

TEST(LocalPart, BoxesLieOneAfterTheOther) {
  const Layout layout = {
      .boxes = BoxList::Create({{1, {{{2, 1}, {2, 2}}, {{0, 0}, {1, 4}}}}, {4, {{{0, 0}, {4, 4}}}}})
                   .value()};
  const auto part = LocalPart::Create(layout, {4, 4}, 1).value();
  EXPECT_EQ(part.shape(), std::vector<int64_t>({8}));
  EXPECT_EQ(part.first(), 9);
  EXPECT_EQ(part.last(), 3);
  std::vector<int64_t> global(8, -1);
  part.ForEachRun([&](int64_t local, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) global[static_cast<size_t>(local + i)] = first + i;
  });
  EXPECT_EQ(global, std::vector<int64_t>({9, 10, 13, 14, 0, 1, 2, 3}));
  std::vector<std::byte> memory(8);
  const TensorView view = part.View(memory.data(), DType::kU8);
  ASSERT_EQ(view.boxes.size(), 2u);
  EXPECT_EQ(view.boxes[0].shape, std::vector<int64_t>({2, 2}));
  EXPECT_EQ(view.boxes[1].data, memory.data() + 4);
  EXPECT_EQ(LocalPart::Create(layout, {4, 4}, 0)->elements(), 0);
}

TEST(LocalPart, NothingIsOwnedOutsideTheMeshOrOfNothing) {
  const auto outside =
      LocalPart::Create(Layout::Parse("2:S(0)").value(), std::vector<int64_t>{4}, 7).value();
  EXPECT_EQ(outside.elements(), 0);
  EXPECT_FALSE(outside.first().has_value());
  const auto zero =
      LocalPart::Create(Layout::Parse("2:S(0)").value(), std::vector<int64_t>{4, 0}, 0).value();
  EXPECT_THAT(zero.shape(), ElementsAre(2, 0));
  EXPECT_FALSE(zero.last().has_value());
}

}  // namespace
}  // namespace sluice::bench
