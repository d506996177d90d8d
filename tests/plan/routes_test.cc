// What ranks have in common in planning, and that it is kept once: the tables of small layouts, and
// routes from them. Random plans show that routes are right.
#include "plan/routes.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mesh/partition.h"
#include "plan/class_tables.h"
#include "plan/job.h"
#include "plan/party.h"
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
  PairParties pairs{4096};
};

PartTuple Parts(int64_t first, int64_t second = 0) { return {first, second}; }

TEST(RoutesTest, ATensorMoreAddsNoRegions) {
  Tables tables({4, 6}, MakeLayout({2}, {0, 1}, "S(0)"), MakeLayout({2}, {2, 3}, "S(1)"));
  ClassRoutes of_rank(&tables.tables, &tables.pairs, 0);
  Plan plan;
  std::vector<Route> routes;
  of_rank.AppendRoutes(0, &plan, &routes);
  of_rank.AppendRoutes(1, &plan, &routes);
  ASSERT_THAT(routes, SizeIs(4));
  EXPECT_THAT(plan.regions, SizeIs(2));
  EXPECT_EQ(routes[2].region, routes[0].region);
  EXPECT_EQ(routes[3].party, routes[1].party);
}

TEST(RoutesTest, WhatARankHasAndNeedsItCopies) {
  Tables tables({4}, MakeLayout({2}, {0, 1}, "S(0)"), MakeLayout({2}, {2, 1}, "S(0)"));
  Plan plan;
  std::vector<Route> routes;
  ClassRoutes(&tables.tables, &tables.pairs, 1).AppendRoutes(0, &plan, &routes);
  ASSERT_THAT(routes, SizeIs(1));
  EXPECT_EQ(routes[0].role, Role::kLocal);
  EXPECT_TRUE(routes[0].party->src_needs);
  EXPECT_EQ(routes[0].end, 2);
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
