// Who takes part in a route, who names its buckets, and that equal parties are one.
#include "plan/party.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mesh/partition.h"
#include "plan/bucket.h"
#include "plan/fanout.h"
#include "plan/gathering.h"
#include "plan/job.h"
#include "plan/plan.h"
#include "plan/serve.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"

namespace sluice {
namespace {

using oracle::MakeLayout;
using oracle::MakeTensor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<int> DstsOf(const Party& party) {
  std::vector<int> ranks;
  for (const FanoutPlace& place : party.dsts) ranks.push_back(place.rank);
  return ranks;
}

TEST(PairPartiesTest, OnePartyForEachPair) {
  PairParties pairs(4096);
  const Party& local = pairs.Of(3, 3);
  EXPECT_TRUE(local.src_needs);
  EXPECT_THAT(local.dsts, IsEmpty());
  const Party& there = pairs.Of(3, 5);
  EXPECT_FALSE(there.src_needs);
  EXPECT_THAT(DstsOf(there), ElementsAre(5));
  EXPECT_EQ(there.dst(), 5);
  EXPECT_EQ(there.number, 0u);
  EXPECT_EQ(there.piece_bytes, 4096);
  EXPECT_NE(&pairs.Of(5, 3), &there);
  // Many more of them leave the first ones where they are.
  for (int dst = 10; dst < 500; ++dst) pairs.Of(3, dst);
  EXPECT_EQ(&pairs.Of(3, 5), &there);
  EXPECT_EQ(&pairs.Of(3, 3), &local);
}

// Rank 0 has a megabyte, and ranks 1 to 4, on two more nodes, need it.
class PartiesTest : public ::testing::Test {
 protected:
  static constexpr int64_t kElements = 1 << 18;

  PartiesTest()
      : tensor_(MakeTensor("x", {kElements}, DType::kF32, MakeLayout({1}, {0}, "R"),
                           MakeLayout({4}, {1, 2, 3, 4}, "R"))),
        partition_(tensor_.src, 1) {}

  const std::vector<int> node_ = {0, 1, 1, 2, 2};
  const PlanOptions options_ = {.bucket_bytes = 1 << 20, .max_in_flight = 2, .node_of_rank = node_};
  const TensorTransfer tensor_;
  const Partition partition_;
  const std::vector<int> holders_ = {0};
  const std::vector<int> ranks_ = {1, 2, 3, 4};
  const Need need_ = {.want = 0, .ranks = ranks_};
  const Share all_ = {.need = 0, .first_rank = 0, .end_rank = 4, .begin = 0, .end = kElements};
};

TEST_F(PartiesTest, EveryRankOfTheNeedIsReachedOnceParentsFirst) {
  Parties parties(tensor_, partition_, options_, 0);
  EXPECT_EQ(parties.element_bytes(), 4);
  const Party& party = parties.Of(0, holders_, need_, all_);
  EXPECT_EQ(party.src, 0);
  EXPECT_FALSE(party.src_needs);
  EXPECT_THAT(DstsOf(party), UnorderedElementsAre(1, 2, 3, 4));
  EXPECT_THAT(party.contributors, IsEmpty());
  EXPECT_THAT(party.steps, IsEmpty());
  // A node's bytes cross once: its second rank gets them from its first.
  std::vector<int> reached_from_outside;
  const std::vector<int> dsts = DstsOf(party);
  for (size_t i = 0; i < party.dsts.size(); ++i) {
    const int32_t parent = party.dsts[i].parent;  // a number among source and destinations
    ASSERT_LE(parent, static_cast<int32_t>(i));
    const int from = parent == 0 ? party.src : dsts[static_cast<size_t>(parent) - 1];
    if (!SharesNode(from, dsts[i], node_))
      reached_from_outside.push_back(node_[static_cast<size_t>(dsts[i])]);
  }
  EXPECT_THAT(reached_from_outside, UnorderedElementsAre(1, 2));
  EXPECT_GT(party.piece_bytes, 0);
  EXPECT_LE(party.piece_bytes, 1 << 20);
}

TEST_F(PartiesTest, EqualOnesAreMadeOnceAndLayoutsTellOthersApart) {
  Parties parties(tensor_, partition_, options_, 0);
  const Party& party = parties.Of(0, holders_, need_, all_);
  const int64_t bytes = parties.bytes();
  EXPECT_GT(bytes, 0);
  EXPECT_EQ(&parties.Of(0, holders_, need_, all_), &party);
  EXPECT_EQ(parties.bytes(), bytes);
  Share half = all_;
  half.end = kElements / 2;
  EXPECT_NE(&parties.Of(0, holders_, need_, half), &party);
  EXPECT_GT(parties.bytes(), bytes);

  Parties others(tensor_, partition_, options_, 1);
  EXPECT_GT(party.number, 0u);  // 0 is for pairs
  EXPECT_EQ(others.Of(0, holders_, need_, all_).number, party.number + kFanoutShapes);

  parties.Clear();
  EXPECT_EQ(parties.bytes(), 0);
}

// Two replicas of two contributions: ranks 0 and 1, and ranks 2 and 3.
TEST(ReducedPartiesTest, AnOwnerAddsUpOneReplica) {
  const std::vector<int> node = {0, 0, 0, 0, 0, 0};
  const PlanOptions options = {.bucket_bytes = 4096, .max_in_flight = 2, .node_of_rank = node};
  TensorTransfer tensor =
      MakeTensor("x", {1000}, DType::kF32, MakeLayout({2, 2}, {0, 1, 2, 3}, "R,P(sum)"),
                 MakeLayout({2}, {4, 5}, "R"));
  tensor.dst_dtype = DType::kBF16;
  const Partition partition(tensor.src, 1);
  Parties parties(tensor, partition, options, 0);
  EXPECT_EQ(parties.element_bytes(), 4);  // as contributed, though the result crosses in two
  const std::vector<int> holders = {0, 1, 2, 3};
  const std::vector<int> ranks = {4, 5};
  const Need by_holders = {.want = 0, .ranks = ranks};
  EXPECT_THAT(parties.ContributorsTo(by_holders, holders, 1), ElementsAre(0, 1));
  EXPECT_THAT(parties.ContributorsTo(by_holders, holders, 2), ElementsAre(2, 3));
  const Need by_targets = {.want = 0, .ranks = ranks, .replica = 1};
  EXPECT_THAT(parties.ContributorsTo(by_targets, holders, 4), ElementsAre(2, 3));

  const Share all = {.need = 0, .end_rank = 2, .begin = 0, .end = 1000};
  const Party& party = parties.Of(4, holders, by_targets, all);
  EXPECT_TRUE(party.src_needs);
  EXPECT_THAT(DstsOf(party), ElementsAre(5));
  EXPECT_FALSE(party.OwnerContributes());
  EXPECT_THAT(party.steps, ElementsAre(GatherStep{0, 4}));
  EXPECT_THAT(party.levels, ElementsAre(Level{2, ReduceOp::kSum}));
}

}  // namespace
}  // namespace sluice
