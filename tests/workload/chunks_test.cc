// Chunks reach every target once, from ranks that take turns.
#include "reshard/baselines/chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Layout MakeLayout(std::vector<int64_t> mesh, std::vector<int> ranks, const char* placements) {
  return {*Mesh::Create(std::move(mesh), std::move(ranks)), *ParsePlacements(placements)};
}

TransferSpec MakeSpec(std::vector<int64_t> shape, Layout src, Layout dst) {
  return {{{"t", std::move(shape), DType::kF32, DType::kF32, std::move(src), std::move(dst)}}};
}

TEST(Chunks, ReplicasTakeTurns) {
  const TransferSpec spec = MakeSpec({16}, MakeLayout({4}, {0, 1, 2, 3}, "R"),
                                     MakeLayout({8}, {8, 9, 10, 11, 12, 13, 14, 15}, "S(0)"));
  std::map<int, int> served;
  ForEachChunk(spec, [&](const Chunk& chunk) { ++served[chunk.src]; });
  EXPECT_THAT(served, ElementsAre(Pair(0, 2), Pair(1, 2), Pair(2, 2), Pair(3, 2)));
}

TEST(Chunks, ATargetThatHasTheElementsServesItself) {
  const TransferSpec spec =
      MakeSpec({6}, MakeLayout({3}, {0, 1, 2}, "R"), MakeLayout({3}, {2, 5, 6}, "S(0)"));
  std::vector<std::pair<int, int>> pairs;
  ForEachChunk(spec, [&](const Chunk& chunk) { pairs.emplace_back(chunk.src, chunk.dst); });
  EXPECT_THAT(pairs, ElementsAre(Pair(2, 2), Pair(0, 5), Pair(1, 6)));
}

TEST(Chunks, EveryContributionIsAChunk) {
  const TransferSpec spec =
      MakeSpec({4}, MakeLayout({2, 2}, {0, 1, 2, 3}, "P(sum),S(0)"), MakeLayout({1}, {7}, "R"));
  std::vector<std::pair<int, size_t>> seen;
  ForEachChunk(spec, [&](const Chunk& chunk) {
    EXPECT_EQ(chunk.block->src.elements(), 2);
    seen.emplace_back(chunk.src, chunk.contribution);
  });
  EXPECT_THAT(seen, ElementsAre(Pair(0, 0u), Pair(2, 1u), Pair(1, 0u), Pair(3, 1u)));
}

TEST(Chunks, TravelAsTheSmallerDTypeUnlessTheyAreToBeReduced) {
  TensorTransfer tensor =
      MakeSpec({4}, MakeLayout({2}, {0, 1}, "S(0)"), MakeLayout({1}, {2}, "R")).tensors[0];
  tensor.dst_dtype = DType::kBF16;
  EXPECT_EQ(WireDType(tensor), DType::kBF16);
  tensor.src_dtype = DType::kF16;
  EXPECT_EQ(WireDType(tensor), DType::kF16);
  tensor.src_dtype = DType::kF8E4M3;
  EXPECT_EQ(WireDType(tensor), DType::kF8E4M3);
  tensor.src_dtype = DType::kF32;
  tensor.src.placements = {Placement::Partial(ReduceOp::kSum)};
  EXPECT_EQ(WireDType(tensor), DType::kF32);
}

}  // namespace
}  // namespace sluice::bench
