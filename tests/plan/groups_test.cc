// Cuts of plans into groups: every rank's part of each fits the budget, and all ranks agree.
#include "plan/groups.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "plan/job.h"

namespace sluice {
namespace {

BucketId Id(uint64_t window, uint64_t round, uint64_t phase, uint64_t src) {
  return BucketId({.window = window, .round = round, .phase = phase, .src = src});
}

// `rounds` rounds of `phases` phases, in each of which the rank has `buckets` buckets.
Plan MakeRankPlan(uint64_t rounds, uint64_t phases, uint64_t buckets) {
  Plan plan;
  plan.channels.resize(phases * buckets);
  for (uint64_t round = 0; round < rounds; ++round) {
    for (uint64_t phase = 0; phase < phases; ++phase) {
      for (uint64_t src = 0; src < buckets; ++src) {
        Bucket& bucket = plan.buckets.emplace_back();
        bucket.id = Id(0, round, phase, src);
        bucket.channel = static_cast<int32_t>(phase * buckets + src);
      }
    }
  }
  return plan;
}

size_t LargestGroup(const Plan& plan, const GroupCut& cut) {
  size_t largest = 0;
  for (size_t begin = 0; begin < plan.buckets.size();) {
    const size_t end = GroupEnd(plan, cut, begin);
    largest = std::max(largest, end - begin);
    begin = end;
  }
  return largest;
}

TEST(GroupsTest, NeedIsOfTheFullestRoundAndPhase) {
  Plan plan = MakeRankPlan(2, 3, 2);
  plan.buckets.emplace_back().id = Id(0, 2, 0, 0);
  plan.buckets.emplace_back().id = Id(1, 2, 0, 0);  // another window's round
  EXPECT_EQ(NeedOf(plan), (GroupNeed{6, 2, 1, 1}));
  for (Bucket& bucket : plan.buckets) bucket.channel = 0;
  EXPECT_EQ(NeedOf(plan), (GroupNeed{6, 2, 6, 2}));
  EXPECT_EQ(NeedOf(Plan()), GroupNeed());
}

TEST(GroupsTest, EveryRanksPartFitsTheSlots) {
  for (uint64_t phases : {1, 2, 7, 16}) {
    for (uint64_t buckets : {1, 2, 3}) {
      const Plan full = MakeRankPlan(5, phases, buckets);
      const Plan sparse = MakeRankPlan(5, phases, 1);
      for (int64_t slots = 1; slots <= 40; ++slots) {
        const GroupCut cut = CutFor(NeedOf(full), {slots, 2});
        EXPECT_LE(LargestGroup(full, cut), static_cast<size_t>(slots));
        EXPECT_LE(LargestGroup(sparse, cut), static_cast<size_t>(slots));
      }
    }
  }
}

TEST(GroupsTest, AGroupLeavesRoomForTheNextWhereItCan) {
  const Plan plan = MakeRankPlan(4, 8, 2);
  EXPECT_EQ(LargestGroup(plan, CutFor(NeedOf(plan), {1, 2})), 1U);
  EXPECT_EQ(LargestGroup(plan, CutFor(NeedOf(plan), {2, 2})), 2U);  // a phase, or nothing
  EXPECT_EQ(LargestGroup(plan, CutFor(NeedOf(plan), {8, 2})), 4U);
  EXPECT_EQ(LargestGroup(plan, CutFor(NeedOf(plan), {32, 2})), 16U);
  EXPECT_EQ(LargestGroup(plan, CutFor(NeedOf(plan), {64, 2})), 32U);  // two rounds
  EXPECT_EQ(LargestGroup(plan, CutFor(NeedOf(plan), {0, 1})), 16U);
}

TEST(GroupsTest, AChannelHasNoMoreThanItMayHaveInFlight) {
  const Plan plan = MakeRankPlan(16, 1, 1);  // one channel
  EXPECT_EQ(LargestGroup(plan, CutFor(NeedOf(plan), {0, 1})), 1U);
  EXPECT_EQ(LargestGroup(plan, CutFor(NeedOf(plan), {0, 3})), 3U);
  EXPECT_EQ(LargestGroup(plan, CutFor(NeedOf(plan), {0, 100})), 4U);  // kept small
}

// All of a channel's buckets of a group have to be in flight at once.
TEST(GroupsTest, ChannelsWithSeveralBucketsInARound) {
  EXPECT_EQ(CutFor({8, 4, 2, 2}, {32, 4}).rounds, 2);
  EXPECT_EQ(CutFor({8, 4, 3, 3}, {32, 4}).rounds, 1);
  const GroupCut by_phases = CutFor({8, 4, 4, 2}, {32, 2});
  EXPECT_EQ(by_phases.phases, 1);
  EXPECT_FALSE(by_phases.single);
  EXPECT_TRUE(CutFor({8, 4, 4, 4}, {32, 2}).single);
}

TEST(GroupsTest, IdsAloneSayWhoBelongsTogether) {
  const GroupCut two_phases = {.phases = 2};
  EXPECT_TRUE(InOneGroup(two_phases, Id(0, 3, 2, 0), Id(0, 3, 3, 5)));
  EXPECT_FALSE(InOneGroup(two_phases, Id(0, 3, 1, 0), Id(0, 3, 2, 0)));
  EXPECT_FALSE(InOneGroup(two_phases, Id(0, 3, 2, 0), Id(0, 4, 2, 0)));
  const GroupCut two_rounds = {.rounds = 2, .phases = 0};
  EXPECT_TRUE(InOneGroup(two_rounds, Id(0, 2, 9, 0), Id(0, 3, 0, 0)));
  EXPECT_FALSE(InOneGroup(two_rounds, Id(0, 1, 9, 0), Id(0, 2, 0, 0)));
  EXPECT_FALSE(InOneGroup(two_rounds, Id(0, 2, 0, 0), Id(1, 2, 0, 0)));
}

TEST(GroupsTest, OperationsOfAKernel) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  EXPECT_EQ(OperationsOfKernel(2, true, 1), 253 / 16);
  EXPECT_EQ(OperationsOfKernel(8, true, 64 * kMiB), 253 / 4);
  EXPECT_EQ(OperationsOfKernel(8, true, 64 * kMiB + 1), 253 / 8);
  EXPECT_EQ(OperationsOfKernel(8, true, 1024 * kMiB), 253 / 32);
  EXPECT_EQ(OperationsOfKernel(16, false, kMiB), 253 / 2);
  EXPECT_EQ(OperationsOfKernel(16, false, 8 * kMiB), 253 / 16);
  EXPECT_EQ(OperationsOfKernel(65536, true, kMiB), 253);
}

TEST(GroupsTest, AGroupHasNoMoreOperationsThanItMay) {
  const GroupNeed need = {.round = 14, .phase = 2, .operations_round = 14, .operations_phase = 2};
  EXPECT_EQ(CutFor(need, {.max_in_flight = 8, .operations = 56}).rounds, 4);
  EXPECT_EQ(CutFor(need, {.max_in_flight = 8, .operations = 55}).rounds, 3);
  EXPECT_EQ(CutFor(need, {.max_in_flight = 8, .operations = 13}).phases, 6);
  EXPECT_EQ(CutFor(need, {.max_in_flight = 8, .operations = 2}).phases, 1);
  EXPECT_TRUE(CutFor(need, {.max_in_flight = 8, .operations = 1}).single);
}

// As NCCL 2.28 counts a group: each operation in parts of at most 16 MiB, over a number of channels
// that is doubled from the fewest for `ranks` ranks.
int64_t PartsOf(int64_t bytes, int ranks) {
  int64_t parts = 1;
  while (2 * parts * ranks <= 32) parts *= 2;
  while (parts < 32 && (bytes + parts - 1) / parts > int64_t{16} << 20) parts *= 2;
  return parts;
}

int64_t PartsOfGroup(const Plan& plan, size_t begin, size_t end, int ranks) {
  int64_t parts = 0;
  for (size_t i = begin; i < end; ++i) {
    const Bucket& bucket = plan.buckets[i];
    const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
    const int64_t operations = channel.child_count + (channel.parent.peer >= 0 ? 1 : 0);
    parts += operations * PartsOf(bucket.bytes, ranks);
  }
  return parts;
}

// All to all, and from all to all, in buckets so large that NCCL uses more channels for each.
TEST(GroupsTest, NoGroupIsMoreThanAKernelOfNccl) {
  constexpr int kRanks = 8;
  for (const char* const placement : {"S(1)", "R"}) {
    for (const int64_t mebibytes : {8, 64, 128, 256, 1024}) {
      oracle::Job job;
      job.bucket_bytes = mebibytes << 20;
      job.max_in_flight = 8;
      job.node_of_rank = std::vector<int>(kRanks, 0);
      const std::vector<int> ranks = oracle::RankRange(0, kRanks);
      job.spec.tensors.push_back(oracle::MakeTensor(
          "weight", {64 << 10, 64 << 10}, DType::kF64, oracle::MakeLayout({kRanks}, ranks, "S(0)"),
          oracle::MakeLayout({kRanks}, ranks, placement)));
      const std::vector<Plan> plans = oracle::Plans(job);
      GroupNeed most;
      for (const Plan& plan : plans) most = Most(most, NeedOf(plan));
      const GroupCut cut =
          CutFor(most, {.max_in_flight = 8,
                        .operations = OperationsOfKernel(kRanks, true, most.operation_bytes)});
      int64_t largest = 0;
      for (const Plan& plan : plans) {
        for (size_t begin = 0; begin < plan.buckets.size();) {
          const size_t end = GroupEnd(plan, cut, begin);
          largest = std::max(largest, PartsOfGroup(plan, begin, end, kRanks));
          begin = end;
        }
      }
      EXPECT_LE(largest, 253) << placement << ", " << mebibytes << " MiB";
      EXPECT_GT(largest, 0);
    }
  }
}

}  // namespace
}  // namespace sluice
