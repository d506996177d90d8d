// What ranks have in common in planning: crossings, ranks and suppliers of small layouts.
#include "plan/class_tables.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mesh/partition.h"
#include "plan/job.h"
#include "plan/plan.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"

namespace sluice {
namespace {

using oracle::MakeLayout;
using oracle::MakeTensor;
using ::testing::ElementsAre;
using ::testing::SizeIs;

// Tables of one tensor; all ranks on one node.
struct Tables {
  Tables(std::vector<int64_t> shape, Layout src, Layout dst)
      : tensor(MakeTensor("x", std::move(shape), DType::kF32, std::move(src), std::move(dst))),
        tables(tensor, options, 0) {}
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  ClassTables* operator->() { return &tables; }

  const std::vector<int> node = std::vector<int>(8, 0);
  const PlanOptions options = {.bucket_bytes = 4096, .max_in_flight = 2, .node_of_rank = node};
  const TensorTransfer tensor;
  ClassTables tables;
};

PartTuple Parts(int64_t first, int64_t second = 0) { return {first, second}; }

// Two pairs of rows to a long and a short half of the columns.
TEST(ClassTablesTest, PartsCrossInTheirCommonRegion) {
  Tables tables({4, 5}, MakeLayout({2}, {0, 1}, "S(0)"), MakeLayout({2}, {2, 3}, "S(1)"));
  const std::vector<Crossing>& of_source = tables->CrossingsOf(Side::kSrc, Parts(1)).list;
  ASSERT_THAT(of_source, SizeIs(2));
  EXPECT_EQ(of_source[0].parts, Parts(0, 0));
  EXPECT_EQ(of_source[0].elements, 2 * 3);
  EXPECT_EQ(of_source[0].row_elements, 3);
  EXPECT_EQ(of_source[1].parts, Parts(0, 1));
  EXPECT_EQ(of_source[1].elements, 2 * 2);
  EXPECT_EQ(of_source[1].row_elements, 2);

  const std::vector<Crossing>& of_target = tables->CrossingsOf(Side::kDst, Parts(0, 1)).list;
  ASSERT_THAT(of_target, SizeIs(2));
  EXPECT_EQ(of_target[0].parts, Parts(0));
  EXPECT_EQ(of_target[1].parts, Parts(1));
  EXPECT_EQ(of_target[1].elements, 2 * 2);
}

TEST(ClassTablesTest, ASingleRowIsCutAnywhere) {
  Tables tables({2, 6}, MakeLayout({2}, {0, 1}, "S(0)"), MakeLayout({1}, {2}, "R"));
  const std::vector<Crossing>& crossings = tables->CrossingsOf(Side::kSrc, Parts(0)).list;
  ASSERT_THAT(crossings, SizeIs(1));
  EXPECT_EQ(crossings[0].elements, 6);
  EXPECT_EQ(crossings[0].row_elements, 1);
}

TEST(ClassTablesTest, RanksOfAPartByReplicaThenByContribution) {
  Tables tables({4}, MakeLayout({2, 2}, {4, 5, 6, 7}, "P(sum),R"),
                MakeLayout({2, 2}, {0, 1, 2, 3}, "R,S(0)"));
  EXPECT_TRUE(tables->reduces());
  EXPECT_THAT(tables->RanksOf(Side::kSrc, Parts(0)), ElementsAre(4, 6, 5, 7));
  EXPECT_THAT(tables->RanksOf(Side::kDst, Parts(1)), ElementsAre(1, 3));
}

TEST(ClassTablesTest, OneHolderForOneRankNeedsNoService) {
  Tables tables({4, 6}, MakeLayout({2}, {0, 1}, "S(0)"), MakeLayout({2}, {2, 3}, "S(1)"));
  EXPECT_FALSE(tables->reduces());
  const std::vector<Supplier>& suppliers = tables->SuppliersOf(Parts(0, 1));
  ASSERT_THAT(suppliers, SizeIs(2));
  EXPECT_EQ(suppliers[0].holder, 0);
  EXPECT_EQ(suppliers[1].holder, 1);
  EXPECT_EQ(suppliers[0].service, nullptr);
}

TEST(ClassTablesTest, SeveralRanksOfAPartAreServedTogether) {
  Tables tables({4}, MakeLayout({2}, {0, 1}, "S(0)"), MakeLayout({2}, {2, 3}, "R"));
  const std::vector<Supplier>& suppliers = tables->SuppliersOf(Parts(0));
  ASSERT_THAT(suppliers, SizeIs(2));
  ASSERT_NE(suppliers[1].service, nullptr);
  EXPECT_EQ(suppliers[1].holder, -1);
  EXPECT_EQ(suppliers[1].want, 0);
  EXPECT_THAT(suppliers[0].service->holders, ElementsAre(0));
  EXPECT_THAT(suppliers[1].service->holders, ElementsAre(1));
}

// All parts that want of a replicated part ask one service, by their number among its wants.
TEST(ClassTablesTest, ReplicasShareOneService) {
  Tables tables({4, 6}, MakeLayout({2}, {0, 1}, "R"),
                MakeLayout({2, 2}, {2, 3, 4, 5}, "S(0),S(1)"));
  const PartService& service = tables->ServiceOf(Parts(0));
  EXPECT_THAT(service.holders, ElementsAre(0, 1));
  int32_t want = 0;
  for (const PartTuple& parts : {Parts(0, 0), Parts(0, 1), Parts(1, 0), Parts(1, 1)}) {
    const std::vector<Supplier>& suppliers = tables->SuppliersOf(parts);
    ASSERT_THAT(suppliers, SizeIs(1));
    EXPECT_EQ(suppliers[0].service, &service);
    EXPECT_EQ(suppliers[0].want, want++);
  }
}

TEST(ClassTablesTest, WhatIsKeptIsCountedAndGivenBack) {
  Tables tables({4, 6}, MakeLayout({2}, {0, 1}, "R"), MakeLayout({2}, {2, 3}, "S(1)"));
  EXPECT_EQ(tables->bytes(), 0);
  tables->SuppliersOf(Parts(0, 0));
  const int64_t one = tables->bytes();
  EXPECT_GT(one, 0);
  tables->SuppliersOf(Parts(0, 0));
  EXPECT_EQ(tables->bytes(), one);
  tables->SuppliersOf(Parts(0, 1));
  EXPECT_GT(tables->bytes(), one);
  tables->Clear();
  EXPECT_EQ(tables->bytes(), 0);
  EXPECT_THAT(tables->SuppliersOf(Parts(0, 0))[0].service->holders, ElementsAre(0, 1));
  EXPECT_EQ(tables->bytes(), one);
}

}  // namespace
}  // namespace sluice
