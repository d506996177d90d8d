// Cells of boxes: each element that a target needs is in one cell, whose ranks all hold it.
#include "plan/box_cells.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/brute_layout.h"
#include "oracle/random_layout.h"
#include "plan/checks.h"
#include "plan/job.h"

namespace sluice {
namespace {

using oracle::Dice;
using oracle::MakeLayout;
using ::testing::AllOf;
using ::testing::HasSubstr;

Layout InBoxes(std::vector<RankBoxes> ranks) {
  Layout layout;
  layout.boxes = BoxList::Create(std::move(ranks)).value();
  return layout;
}

TensorTransfer MakeTensor(std::vector<int64_t> shape, Layout src, Layout dst) {
  return oracle::MakeTensor("t", std::move(shape), DType::kF32, std::move(src), std::move(dst));
}

TEST(BoxCellsTest, TensorsWithoutBoxesStayWhole) {
  TransferSpec spec;
  spec.priority_class = 2;
  spec.tensors = {MakeTensor({8}, MakeLayout({2}, {0, 1}, "S(0)"), MakeLayout({1}, {2}, "R"))};
  EXPECT_FALSE(HasBoxes(spec));
  const auto cells = CutIntoCells(spec).value();
  ASSERT_EQ(cells.spec.tensors.size(), 1u);
  EXPECT_EQ(cells.spec.tensors[0].name, "t");
  EXPECT_EQ(cells.spec.priority_class, 2);
  EXPECT_TRUE(cells.cells[0].offset.empty());
}

// Two ranks hold halves, a third one all of it; the target takes the middle.
TEST(BoxCellsTest, CellsEndWhereSourcesDo) {
  TransferSpec spec;
  spec.tensors = {MakeTensor(
      {8, 4}, InBoxes({{0, {{{0, 0}, {4, 4}}}}, {1, {{{4, 0}, {4, 4}}}}, {2, {{{0, 0}, {8, 4}}}}}),
      InBoxes({{3, {{{2, 1}, {5, 2}}}}, {4, {{{2, 1}, {5, 2}}}}}))};
  EXPECT_TRUE(HasBoxes(spec));
  const auto cells = CutIntoCells(spec).value();
  ASSERT_EQ(cells.cells.size(), 2u);
  EXPECT_EQ(cells.cells[0].offset, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(cells.cells[1].offset, (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(cells.spec.tensors[0].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(cells.spec.tensors[1].shape, (std::vector<int64_t>{3, 2}));
  EXPECT_THAT(cells.spec.tensors[0].src.mesh.ranks(), ::testing::ElementsAre(0, 2));
  EXPECT_THAT(cells.spec.tensors[1].src.mesh.ranks(), ::testing::ElementsAre(1, 2));
  EXPECT_THAT(cells.spec.tensors[1].dst.mesh.ranks(), ::testing::ElementsAre(3, 4));
}

TEST(BoxCellsTest, WhatNobodyHoldsIsNamed) {
  TransferSpec spec;
  spec.tensors = {MakeTensor({8}, InBoxes({{0, {{{0}, {3}}, {{5}, {3}}}}}),
                             InBoxes({{1, {{{0}, {3}}}}, {2, {{{2}, {4}}}}}))};
  absl::Status status = CutIntoCells(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("tensor 0 't'"), HasSubstr("no rank holds the elements [2] at [3]"),
                    HasSubstr("rank 2 needs")));
  spec.tensors[0].dst = MakeLayout({1}, {1}, "R");
  status = CutIntoCells(spec).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("no rank holds the elements [2] at [3]"));
}

// Of each element, who holds it, by boxes or placements. Contributions count as holding.
std::map<int64_t, std::set<int>> HoldersOf(const Layout& layout, absl::Span<const int64_t> shape) {
  std::map<int64_t, std::set<int>> holders;
  for (const RankBoxes& of : layout.boxes.ranks()) {
    for (const Box& box : of.boxes) {
      for (const int64_t e : oracle::FlatIndices(oracle::ListsOf(box), shape))
        holders[e].insert(of.rank);
    }
  }
  for (const int rank : layout.mesh.ranks()) {
    for (const int64_t e : oracle::FlatIndices(*oracle::OwnedLists(layout, shape, rank), shape)) {
      holders[e].insert(rank);
    }
  }
  return holders;
}

Layout RandomSide(Dice* dice, absl::Span<const int64_t> shape, const std::vector<int>& ranks,
                  bool boxes, bool covers) {
  Layout layout;
  if (boxes) {
    layout.boxes = oracle::RandomBoxes(dice, shape, ranks, covers);
    return layout;
  }
  return oracle::RandomLayout(dice, ranks, static_cast<int>(shape.size()));
}

// A target that boxes cut in several ways may have an element in cells of several target boxes, but
// each rank has it once.
TEST(BoxCellsTest, RandomCellsCoverEachTargetOnce) {
  int cut = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Dice dice(seed);
    const std::vector<int64_t> shape = oracle::RandomShape(&dice, 3, 400);
    const bool empty = std::count(shape.begin(), shape.end(), 0) > 0;
    if (empty) continue;
    const int64_t ranks = dice.Between(1, 8);
    const std::vector<int> all = oracle::RankRange(0, static_cast<int>(ranks));
    const int64_t kinds = dice.Between(1, 3);
    TransferSpec spec;
    spec.tensors = {MakeTensor(shape, RandomSide(&dice, shape, all, kinds != 2, true),
                               RandomSide(&dice, shape, all, kinds != 1, false))};
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const auto cells = CutIntoCells(spec).value();
    cut += cells.cells.size() > 2 ? 1 : 0;
    const auto sources = HoldersOf(spec.tensors[0].src, shape);
    const auto targets = HoldersOf(spec.tensors[0].dst, shape);
    std::map<int64_t, std::multiset<int>> delivered;
    for (size_t i = 0; i < cells.cells.size(); ++i) {
      const TensorTransfer& cell = cells.spec.tensors[i];
      ASSERT_TRUE(ValidateLayout(cell.src, cell.shape).ok());
      ASSERT_TRUE(ValidateLayout(cell.dst, cell.shape).ok());
      const std::vector<int64_t> of_cell =
          oracle::FlatIndices(oracle::ListsOf({cells.cells[i].offset, cell.shape}), shape);
      std::map<int64_t, int64_t> in_tensor;  // by flat index in the cell
      for (size_t e = 0; e < of_cell.size(); ++e) in_tensor[static_cast<int64_t>(e)] = of_cell[e];
      for (const auto& [e, holders] : HoldersOf(cell.src, cell.shape)) {
        ASSERT_EQ(holders, sources.at(in_tensor.at(e)));
      }
      for (const auto& [e, holders] : HoldersOf(cell.dst, cell.shape)) {
        delivered[in_tensor.at(e)].insert(holders.begin(), holders.end());
      }
    }
    ASSERT_EQ(delivered.size(), targets.size());
    for (const auto& [e, ranks_of] : targets) {
      ASSERT_EQ(delivered.at(e), std::multiset<int>(ranks_of.begin(), ranks_of.end()));
    }
  }
  EXPECT_GT(cut, 1000);
}

// The plans of cells are exact, for all ranks, as those of any tensors.
TEST(BoxCellsTest, PlansOfRandomCellsDeliver) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Dice dice(seed);
    oracle::Job job;
    const int64_t ranks = dice.Between(1, 8);
    const std::vector<int> all = oracle::RankRange(0, static_cast<int>(ranks));
    for (const int rank : all) job.node_of_rank.push_back(rank / 3);
    job.bucket_bytes = dice.Between(16, 400);
    TransferSpec spec;
    for (int64_t t = dice.Between(1, 3); t > 0; --t) {
      const std::vector<int64_t> shape = oracle::RandomShape(&dice, 3, 400);
      if (std::count(shape.begin(), shape.end(), 0) > 0) continue;
      const int64_t kinds = dice.Between(1, 3);
      spec.tensors.push_back(MakeTensor(shape, RandomSide(&dice, shape, all, kinds != 2, true),
                                        RandomSide(&dice, shape, all, kinds != 1, false)));
    }
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    auto cells = CutIntoCells(spec).value();
    job.spec = std::move(cells.spec);
    const auto plans = PlanAllRanks(job).value();
    std::vector<oracle::Moved> moved;
    const absl::Status delivered = Deliver(job, plans, &moved);
    ASSERT_TRUE(delivered.ok()) << delivered << "\n" << Describe(job);
  }
}

// Cells of one pair of layouts are one pair, however many they are.
TEST(BoxCellsTest, ManyCellsOfATargetWithReplicas) {
  constexpr int64_t kRows = 3000;
  std::vector<RankBoxes> rows = {{0, {}}, {1, {}}};
  for (int64_t i = 0; i < kRows; ++i) {
    rows[static_cast<size_t>(i % 2)].boxes.push_back({{i, 0}, {1, 2}});
  }
  oracle::Job job;
  job.node_of_rank = {0, 0, 1, 1};
  job.bucket_bytes = 4096;
  TransferSpec spec;
  spec.tensors = {
      MakeTensor({kRows, 2}, InBoxes(std::move(rows)), MakeLayout({2, 2}, {0, 1, 2, 3}, "R,S(0)"))};
  auto cells = CutIntoCells(spec).value();
  ASSERT_GE(cells.spec.tensors.size(), static_cast<size_t>(kRows));
  job.spec = std::move(cells.spec);
  const auto plans = PlanAllRanks(job).value();
  std::vector<oracle::Moved> moved;
  const absl::Status delivered = Deliver(job, plans, &moved);
  EXPECT_TRUE(delivered.ok()) << delivered;
}

// What is wrong with a tensor, all ranks say of the same one.
TEST(BoxCellsTest, BucketsTooSmallForAReduction) {
  const Layout sums = MakeLayout({2, 2}, {0, 1, 2, 3}, "P(sum),P(max)");
  for (const bool boxed : {false, true}) {
    TransferSpec spec;
    spec.tensors = {MakeTensor({8}, MakeLayout({4}, {0, 1, 2, 3}, "S(0)"), sums), {}};
    spec.tensors[0].dst = InBoxes({{0, {{{0}, {4}}}}, {3, {{{2}, {6}}}}});
    spec.tensors[1] = MakeTensor({8}, sums, MakeLayout({4}, {0, 1, 2, 3}, "S(0)"));
    spec.tensors[1].name = "gradient";
    if (boxed) spec.tensors[1].dst = InBoxes({{1, {{{0}, {3}}}}, {2, {{{2}, {6}}}}});
    const auto cells = CutIntoCells(spec).value();
    oracle::Job job;
    job.node_of_rank = {0, 0, 1, 1};
    job.bucket_bytes = 16;
    job.spec = cells.spec;
    for (int rank = 0; rank < 4; ++rank) {
      const absl::Status status = MakePlan(job.spec, job.options(), rank).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()),
                  testing::StartsWith(boxed ? "a tensor with boxes: a reduction over 2"
                                            : "tensor 'gradient': a reduction over 2"));
    }
  }
}

}  // namespace
}  // namespace sluice
