// Halves with boxes that become one layout, and whether sources then have all that is needed.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/make_layout.h"
#include "oracle/random_layout.h"
#include "plan/connect/box_coverage.h"
#include "plan/connect/check_half.h"
#include "plan/connect/match.h"
#include "plan/connect/merged_layouts.h"
#include "plan/connect_halves.h"

namespace sluice {
namespace {

using absl::StatusCode;
using testing::ElementsAre;

struct BoxedTensor {
  std::string name;
  std::vector<Box> boxes;
  std::vector<int64_t> shape = {8};
  DType dtype = DType::kF32;
  absl::optional<int> window = absl::nullopt;
};

RankedHalf BoxedHalf(std::vector<int> ranks, const std::vector<BoxedTensor>& sources,
                     const std::vector<BoxedTensor>& targets) {
  const auto in_boxes = [](const std::vector<BoxedTensor>& tensors) {
    std::vector<GivenTensor> given;
    for (const BoxedTensor& each : tensors) {
      Layout layout;
      layout.boxes = *BoxList::Create({{kHalfBoxesRank, each.boxes}});
      given.push_back({each.name, layout, each.shape, each.dtype, each.window});
    }
    return given;
  };
  return HalfOf(std::move(ranks), in_boxes(sources), in_boxes(targets));
}

// The whole of `shape` on one rank.
RankedHalf WholeTarget(int rank, const std::string& name, std::vector<int64_t> shape = {8}) {
  return HalfOf({rank}, {}, {{name, oracle::MakeLayout({1}, {rank}, "R"), std::move(shape)}});
}

TEST(MatchBoxesTest, BoxesOfAllRanksAreOneLayout) {
  const std::vector<Box> low = {{{0}, {4}}}, high = {{{4}, {2}}, {{6}, {2}}};
  const auto match =
      MatchHalves(std::vector<RankedHalf>{
                      BoxedHalf({0, 3}, {{"a", low}, {"b", low}}, {}),
                      BoxedHalf({1}, {{"b", high}, {"a", high}}, {{"b", high}, {"a", high}}),
                      BoxedHalf({2}, {}, {{"a", low}}),
                  })
          .value();
  ASSERT_EQ(match.spec.tensors.size(), 2u);
  const TensorTransfer& b = match.spec.tensors[0];
  EXPECT_EQ(b.name, "b");
  ASSERT_EQ(b.src.boxes.ranks().size(), 3u);
  EXPECT_THAT(b.src.boxes.Of(0), ElementsAre(low[0]));
  EXPECT_THAT(b.src.boxes.Of(3), ElementsAre(low[0]));
  EXPECT_THAT(b.src.boxes.Of(1), ElementsAre(high[0], high[1]));
  const TensorTransfer& a = match.spec.tensors[1];
  EXPECT_EQ(a.src.boxes.identity(), b.src.boxes.identity()) << "equal lists are one";
  EXPECT_THAT(a.dst.boxes.Of(2), ElementsAre(low[0]));
  EXPECT_EQ(b.dst.boxes.ranks().size(), 1u);
}

TEST(MatchBoxesTest, RanksOfANameDescribeItAlike) {
  const std::vector<Box> all = {{{0}, {4}}};
  const auto with = [&](BoxedTensor other) {
    return std::vector<RankedHalf>{BoxedHalf({0, 2}, {{"a", all}}, {}),
                                   BoxedHalf({1}, {std::move(other)}, {{"a", all}})};
  };
  ExpectNoMatch(with({"a", all, {9}}), StatusCode::kFailedPrecondition,
                "ranks disagree on source 'a': shape [8] on ranks 0, 2, [9] on rank 1");
  ExpectNoMatch(with({"a", all, {8}, DType::kI32}), StatusCode::kFailedPrecondition,
                "f32 on ranks 0, 2, i32 on rank 1");
  ExpectNoMatch(with({"a", all, {8}, DType::kF32, 3}), StatusCode::kFailedPrecondition,
                "no window on ranks 0, 2, window 3 on rank 1");
  ExpectNoMatch({BoxedHalf({0}, {{"a", {{{0}, {8}}}}}, {{"a", all}}), WholeTarget(1, "a")},
                StatusCode::kFailedPrecondition,
                "ranks disagree on target 'a': boxes on rank 0, R on mesh [1] of rank 1 on rank 1");
}

TEST(MatchBoxesTest, WhatNoSourceBoxHoldsIsNamed) {
  const std::vector<Box> low = {{{0}, {3}}}, high = {{{5}, {3}}};
  ExpectNoMatch(
      {BoxedHalf({0}, {{"a", low}, {"b", low}}, {}),
       BoxedHalf({1, 2}, {{"a", high}, {"b", low}}, {{"b", {{{2}, {1}}}}}), WholeTarget(3, "a")},
      StatusCode::kInvalidArgument,
      "element [3] of source 'a' of ranks 0-2, for target 'a' of rank 3");
  ExpectNoMatch({BoxedHalf({0}, {{"a", low}}, {}), BoxedHalf({1}, {{"a", high}}, {{"a", high}}),
                 BoxedHalf({2, 4}, {}, {{"a", {{{2}, {2}}}}}), BoxedHalf({3}, {}, {{"a", low}})},
                StatusCode::kInvalidArgument,
                "element [3] of source 'a' of ranks 0, 1, for target 'a' of ranks 2, 4");
}

TEST(MatchBoxesTest, ATensorHasOnlySoManyBoxes) {
  std::vector<Box> many;
  for (int64_t i = 0; i < BoxList::kBoxesMax / 2; ++i) many.push_back({{i}, {1}});
  const std::vector<int64_t> shape = {BoxList::kBoxesMax};
  ExpectNoMatch(
      {BoxedHalf({0, 1, 2}, {{"a", many, shape}}, {}), WholeTarget(3, "a", shape)},
      StatusCode::kResourceExhausted,
      "source 'a' of ranks 0-2: its ranks have 1572864 boxes; at most 1048576 are possible");
}

TEST(MergedLayoutsTest, AllListsTogetherHaveOnlySoManyBoxes) {
  std::vector<RankBoxes> list = {{kHalfBoxesRank, {{{0}, {4}}, {{4}, {4}}}}};
  const BoxList boxes = *BoxList::Create(std::move(list));
  const std::vector<int> two = {0, 1}, one = {2};
  MergedLayouts merged(/*boxes_max=*/6);
  const auto first = merged.OfBoxes({{two, &boxes, 0, 0}}).value();
  EXPECT_EQ(merged.OfBoxes({{two, &boxes, 0, 0}})->boxes.identity(), first.boxes.identity());
  EXPECT_TRUE(merged.OfBoxes({{one, &boxes, 0, 1}}).ok());
  const absl::Status status = merged.OfBoxes({{two, &boxes, 0, 0}, {one, &boxes, 0, 1}}).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
}

bool Has(const BoxList& list, const std::vector<int64_t>& element) {
  for (const RankBoxes& of : list.ranks()) {
    for (const Box& box : of.boxes) {
      bool inside = true;
      for (size_t d = 0; d < element.size(); ++d) {
        inside &= element[d] >= box.offset[d] && element[d] < box.offset[d] + box.shape[d];
      }
      if (inside) return true;
    }
  }
  return false;
}

std::vector<int> Holders(const BoxList& list, const std::vector<int64_t>& element) {
  std::vector<int> ranks;
  for (const RankBoxes& of : list.ranks()) {
    std::vector<RankBoxes> alone = {of};
    if (Has(*BoxList::Create(std::move(alone)), element)) ranks.push_back(of.rank);
  }
  return ranks;
}

// Whether an element of the target is in no source box, one element after the other.
bool BruteHole(const BoxList& sources, const Layout& target, const std::vector<int64_t>& shape) {
  std::vector<int64_t> at(shape.size(), 0);
  while (true) {
    if ((target.boxes.empty() || Has(target.boxes, at)) && !Has(sources, at)) return true;
    size_t d = shape.size();
    while (d > 0 && ++at[d - 1] == shape[d - 1]) at[--d] = 0;
    if (d == 0) return false;
  }
}

TEST(FindHoleTest, RandomBoxesAgainstBruteForce) {
  int holes = 0, covered = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    oracle::Dice dice(seed);
    const std::vector<int64_t> shape = oracle::RandomShape(&dice, 3, 300);
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) continue;
    const BoxList sources = oracle::RandomBoxes(&dice, shape, {0, 1, 2, 5}, dice.Chance(30));
    Layout target = {*Mesh::Create({2}, {0, 1}), {Placement::Shard(0)}};
    if (dice.Chance(70)) {
      target = {};
      target.boxes = oracle::RandomBoxes(&dice, shape, {1, 3, 4}, false);
    }
    const auto hole = FindHole(sources, target, shape).value();
    ASSERT_EQ(hole.has_value(), BruteHole(sources, target, shape)) << "seed " << seed;
    ++(hole.has_value() ? holes : covered);
    if (!hole.has_value()) continue;
    EXPECT_FALSE(Has(sources, hole->element)) << "seed " << seed;
    for (size_t d = 0; d < shape.size(); ++d) EXPECT_LT(hole->element[d], shape[d]);
    if (target.boxes.empty()) {
      EXPECT_TRUE(hole->ranks.empty());
      continue;
    }
    EXPECT_FALSE(hole->ranks.empty());
    const std::vector<int> holders = Holders(target.boxes, hole->element);
    for (const int rank : hole->ranks) {
      EXPECT_TRUE(std::count(holders.begin(), holders.end(), rank) == 1) << "seed " << seed;
    }
  }
  EXPECT_GT(holes, 100);
  EXPECT_GT(covered, 100);
}

TEST(FindHoleTest, NothingIsNeededOfNothing) {
  std::vector<RankBoxes> list = {{0, {{{0, 0}, {1, 1}}}}};
  const Layout target = {*Mesh::Create({1}, {0}), {Placement::Replicate()}};
  const auto hole =
      FindHole(*BoxList::Create(std::move(list)), target, std::vector<int64_t>{3, 0}).value();
  EXPECT_FALSE(hole.has_value());
}

}  // namespace
}  // namespace sluice
