// The routes of single ranks in layouts small enough to be worked out by hand.
#include "plan/routes.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/bucket.h"
#include "plan/class_tables.h"
#include "plan/job.h"
#include "plan/party.h"
#include "plan/plan.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

using oracle::MakeLayout;
using oracle::MakeTensor;
using ::testing::ElementsAre;
using ::testing::SizeIs;

using Pair = std::pair<int, int>;

// All ranks of a job plan from the same tables.
class RoutesTest : public ::testing::Test {
 protected:
  void Between(std::vector<int64_t> shape, Layout src, Layout dst) {
    tensor_ = MakeTensor("x", std::move(shape), DType::kF32, std::move(src), std::move(dst));
    tables_ = std::make_unique<ClassTables>(tensor_, options_, 0);
  }

  // Those of one tensor, planned alone.
  std::vector<Route> RoutesOf(int rank, int64_t rotation, Plan* plan) {
    std::vector<Route> routes;
    ClassRoutes(tables_.get(), &pairs_, rank).AppendRoutes(rotation, plan, &routes);
    return routes;
  }
  std::vector<Route> RoutesOf(int rank, int64_t rotation) {
    Plan plan;
    return RoutesOf(rank, rotation, &plan);
  }

  // Ranks 0 to 3 are on one node, the others on another.
  const std::vector<int> node_ = {0, 0, 0, 0, 1, 1, 1, 1};
  const PlanOptions options_ = {.bucket_bytes = 4096, .max_in_flight = 2, .node_of_rank = node_};
  TensorTransfer tensor_;
  std::unique_ptr<ClassTables> tables_;
  PairParties pairs_{4096};
};

std::vector<Pair> PairsOf(const std::vector<Route>& routes) {
  std::vector<Pair> pairs;
  for (const Route& route : routes) pairs.emplace_back(route.party->src, route.party->dst());
  return pairs;
}

void ExpectRun(const Plan& plan, size_t region, size_t dim, const Stretch& expected) {
  const auto first = static_cast<size_t>(plan.regions[region].first_run[dim]);
  ASSERT_EQ(plan.regions[region].first_run[dim + 1], static_cast<int32_t>(first) + 1);
  EXPECT_EQ(plan.runs[first].src, expected.src);
  EXPECT_EQ(plan.runs[first].dst, expected.dst);
  EXPECT_EQ(plan.runs[first].length, expected.length);
}

// Two rows each, to three columns each.
TEST_F(RoutesTest, RowsToColumns) {
  Between({4, 6}, MakeLayout({2}, {0, 1}, "S(0)"), MakeLayout({2}, {2, 3}, "S(1)"));
  Plan plan;
  const std::vector<Route> of_source = RoutesOf(0, 0, &plan);
  EXPECT_THAT(PairsOf(of_source), ElementsAre(Pair(0, 2), Pair(0, 3)));
  EXPECT_EQ(of_source[1].role, Role::kSource);
  EXPECT_EQ(of_source[1].begin, 0);
  EXPECT_EQ(of_source[1].end, 6);
  EXPECT_EQ(of_source[1].row_elements, 3);
  ASSERT_EQ(of_source[1].region, 1);
  // From its local rows to the wire, where both dimensions begin at 0.
  ExpectRun(plan, 1, 0, {0, 0, 2});
  ExpectRun(plan, 1, 1, {3, 0, 3});

  Plan of_rank_3;
  const std::vector<Route> of_target = RoutesOf(3, 0, &of_rank_3);
  EXPECT_THAT(PairsOf(of_target), ElementsAre(Pair(0, 3), Pair(1, 3)));
  EXPECT_EQ(of_target[1].role, Role::kDestination);
  EXPECT_EQ(of_target[1].end, 6);
  ASSERT_EQ(of_target[1].region, 1);
  ExpectRun(of_rank_3, 1, 0, {0, 2, 2});
  ExpectRun(of_rank_3, 1, 1, {0, 0, 3});
}

TEST_F(RoutesTest, LocalShapesAndRanksWithoutAPart) {
  Between({4, 6}, MakeLayout({2}, {0, 1}, "S(0)"), MakeLayout({2}, {2, 3}, "S(1)"));
  const ClassRoutes source(tables_.get(), &pairs_, 0);
  EXPECT_THAT(source.src_local_shape(), ElementsAre(2, 6));
  EXPECT_THAT(source.dst_local_shape(), ElementsAre(0, 0));
  const ClassRoutes target(tables_.get(), &pairs_, 3);
  EXPECT_THAT(target.dst_local_shape(), ElementsAre(4, 3));
  EXPECT_THAT(RoutesOf(7, 0), SizeIs(0));
}

TEST_F(RoutesTest, ATensorMoreAddsNoRegions) {
  Between({4, 6}, MakeLayout({2}, {0, 1}, "S(0)"), MakeLayout({2}, {2, 3}, "S(1)"));
  ClassRoutes of_rank(tables_.get(), &pairs_, 0);
  Plan plan;
  std::vector<Route> routes;
  of_rank.AppendRoutes(0, &plan, &routes);
  of_rank.AppendRoutes(1, &plan, &routes);
  ASSERT_THAT(routes, SizeIs(4));
  EXPECT_THAT(plan.regions, SizeIs(2));
  EXPECT_EQ(routes[2].region, routes[0].region);
  EXPECT_EQ(routes[3].party, routes[1].party);
}

TEST_F(RoutesTest, WhatARankHasAndNeedsItCopies) {
  Between({4}, MakeLayout({2}, {0, 1}, "S(0)"), MakeLayout({2}, {2, 1}, "S(0)"));
  Plan plan;
  const std::vector<Route> routes = RoutesOf(1, 0, &plan);
  ASSERT_THAT(routes, SizeIs(1));
  EXPECT_EQ(routes[0].role, Role::kLocal);
  EXPECT_TRUE(routes[0].party->src_needs);
  EXPECT_EQ(routes[0].end, 2);
  ExpectRun(plan, 0, 0, {0, 0, 2});
  EXPECT_THAT(PairsOf(RoutesOf(0, 0)), ElementsAre(Pair(0, 2)));
}

// Small tensors are not cut: each replica serves one target, and the next tensor the other.
TEST_F(RoutesTest, ReplicasTakeTurns) {
  Between({4}, MakeLayout({2}, {0, 1}, "R"), MakeLayout({2}, {4, 5}, "S(0)"));
  for (const int64_t rotation : {0, 1, 2}) {
    const int even = rotation % 2 == 0 ? 0 : 1;  // who serves rank 4
    EXPECT_THAT(PairsOf(RoutesOf(even, rotation)), ElementsAre(Pair(even, 4))) << rotation;
    EXPECT_THAT(PairsOf(RoutesOf(1 - even, rotation)), ElementsAre(Pair(1 - even, 5))) << rotation;
    EXPECT_THAT(PairsOf(RoutesOf(4, rotation)), ElementsAre(Pair(even, 4))) << rotation;
    EXPECT_THAT(PairsOf(RoutesOf(5, rotation)), ElementsAre(Pair(1 - even, 5))) << rotation;
  }
}

// Of little, one holder reduces all; which one, rotates from tensor to tensor.
TEST_F(RoutesTest, MembersOfAReductionAgree) {
  Between({24}, MakeLayout({2}, {0, 1}, "P(sum)"), MakeLayout({1}, {4}, "R"));
  for (const int64_t rotation : {0, 1}) {
    const int owner = static_cast<int>(rotation);
    const std::vector<Route> of_owner = RoutesOf(owner, rotation);
    const std::vector<Route> of_other = RoutesOf(1 - owner, rotation);
    const std::vector<Route> of_target = RoutesOf(4, rotation);
    ASSERT_THAT(of_owner, SizeIs(1));
    ASSERT_THAT(of_other, SizeIs(1));
    ASSERT_THAT(of_target, SizeIs(1));
    EXPECT_EQ(of_owner[0].role, Role::kOwner);
    EXPECT_EQ(of_other[0].role, Role::kContributor);
    EXPECT_EQ(of_target[0].role, Role::kDestination);
    EXPECT_EQ(of_owner[0].party->src, owner);
    EXPECT_THAT(of_owner[0].party->contributors, ElementsAre(0, 1));
    EXPECT_EQ(of_other[0].party, of_owner[0].party);
    EXPECT_EQ(of_target[0].party, of_owner[0].party);
    EXPECT_EQ(of_target[0].end, 24);
  }
}

TEST_F(RoutesTest, AContributorThatNeedsTheSumReducesIt) {
  Between({24}, MakeLayout({2}, {0, 1}, "P(sum)"), MakeLayout({1}, {1}, "R"));
  Plan plan;
  const std::vector<Route> routes = RoutesOf(1, 0, &plan);
  ASSERT_THAT(routes, SizeIs(1));
  EXPECT_EQ(routes[0].role, Role::kOwner | Role::kDestination);
  ASSERT_EQ(routes[0].region, 0);
  EXPECT_EQ(routes[0].dst_region, 1);
  const std::vector<Route> of_other = RoutesOf(0, 0);
  ASSERT_THAT(of_other, SizeIs(1));
  EXPECT_EQ(of_other[0].role, Role::kContributor);
  EXPECT_EQ(of_other[0].dst_region, -1);
}

}  // namespace
}  // namespace sluice
