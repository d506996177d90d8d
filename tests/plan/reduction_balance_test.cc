// How many bytes a reduction moves, and how evenly the group that holds contributions shares them.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "plan/job.h"
#include "plan/plan.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

using oracle::Job;
using oracle::MakeLayout;
using oracle::MakeTensor;
using oracle::RankRange;

// What one rank's plan makes it move.
struct Load {
  int64_t sent = 0;         // contributions, results and relays
  int64_t contributed = 0;  // contributions of others that come here
  int64_t results = 0;      // that come here from an owner or a relay
};

Load LoadOf(const Plan& plan) {
  Load load;
  load.sent = plan.sent_bytes;
  for (const Bucket& bucket : plan.buckets) {
    const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
    if (Has(bucket.role, Role::kOwner)) {
      const int64_t own = channel.own_contribution >= 0 ? 1 : 0;
      load.contributed += (channel.contribution_count - own) * bucket.contribution_bytes;
    } else if (Has(bucket.role, Role::kDestination)) {
      load.results += bucket.bytes;
    }
  }
  return load;
}

std::vector<Load> LoadsOf(const Job& job) {
  const auto plans = PlanAllRanks(job);
  EXPECT_TRUE(plans.ok()) << plans.status();
  std::vector<Load> loads;
  for (const Plan& plan : *plans) loads.push_back(LoadOf(plan));
  return loads;
}

int64_t Total(const std::vector<Load>& loads, int64_t Load::*what) {
  return std::accumulate(loads.begin(), loads.end(), int64_t{0},
                         [what](int64_t sum, const Load& load) { return sum + load.*what; });
}

// The busiest of ranks [first, first + ranks), over their mean.
double Imbalance(const std::vector<Load>& loads, int ranks, int64_t Load::*what, int first = 0) {
  const std::vector<Load> group(loads.begin() + first, loads.begin() + first + ranks);
  const auto busiest =
      std::max_element(group.begin(), group.end(),
                       [what](const Load& a, const Load& b) { return a.*what < b.*what; });
  return static_cast<double>((*busiest).*what) * ranks / static_cast<double>(Total(group, what));
}

struct Reduction {
  std::vector<int64_t> mesh;  // of the sources, ranks 0, 1, ...
  const char* src;
  int targets;  // as many ranks after those of the sources, or the first of those
  const char* dst;
  bool inside = false;
};

// 1021 x 2053 elements: large, and of primes, so that no number of ranks divides them.
constexpr int64_t kElements = int64_t{1021} * 2053;

// Ranks that only need are on a node of their own.
Job MakeJob(const Reduction& reduction, DType src_dtype, DType dst_dtype) {
  const auto sources = static_cast<int>(std::accumulate(
      reduction.mesh.begin(), reduction.mesh.end(), int64_t{1}, std::multiplies<>()));
  Job job;
  job.node_of_rank.assign(static_cast<size_t>(int64_t{sources} + reduction.targets), 1);
  std::fill_n(job.node_of_rank.begin(), sources, 0);
  job.spec.tensors.push_back(MakeTensor(
      "gradient", {1021, 2053}, src_dtype,
      MakeLayout(reduction.mesh, RankRange(0, sources), reduction.src),
      MakeLayout({reduction.targets}, RankRange(reduction.inside ? 0 : sources, reduction.targets),
                 reduction.dst)));
  job.spec.tensors[0].dst_dtype = dst_dtype;
  return job;
}

// To other ranks: each contribution but the owner's crosses once, and each target gets its copy.
TEST(ReductionBalanceTest, DisjointTargets) {
  for (int group = 2; group <= 9; ++group) {
    for (const int targets : {1, 2, 3, 5, 8}) {
      for (const char* dst : {"R", "S(0)", "S(1)"}) {
        const Job job = MakeJob({{group}, "P(sum)", targets, dst}, DType::kF32, DType::kBF16);
        SCOPED_TRACE(Describe(job));
        const std::vector<Load> loads = LoadsOf(job);
        const int64_t copies = std::string(dst) == "R" ? targets : 1;
        EXPECT_EQ(Total(loads, &Load::contributed), (group - 1) * kElements * 4);
        EXPECT_EQ(Total(loads, &Load::results), copies * kElements * 2);
        EXPECT_EQ(Total(loads, &Load::sent), (group - 1) * kElements * 4 + copies * kElements * 2);
        EXPECT_LE(Imbalance(loads, group, &Load::sent), 1.1);
        EXPECT_LE(Imbalance(loads, group, &Load::contributed), 1.1);
      }
    }
  }
}

// Replicas of the contributions, several Partial dimensions and shards share the work likewise.
TEST(ReductionBalanceTest, MeshesOfSeveralDimensions) {
  const struct {
    Reduction reduction;
    int64_t contributions;
  } cases[] = {{{{2, 3}, "R,P(sum)", 3, "R"}, 3},       {{{3, 2}, "P(max),R", 2, "S(0)"}, 3},
               {{{2, 3}, "P(sum),P(max)", 3, "R"}, 6},  {{{2, 2, 2}, "P(avg),R,P(avg)", 1, "R"}, 4},
               {{{2, 3}, "S(0),P(sum)", 4, "S(1)"}, 3}, {{{4, 2}, "P(sum),S(1)", 5, "R"}, 4}};
  for (const auto& [reduction, contributions] : cases) {
    const Job job = MakeJob(reduction, DType::kF64, DType::kF64);
    SCOPED_TRACE(Describe(job));
    const std::vector<Load> loads = LoadsOf(job);
    const int64_t copies = std::string(reduction.dst) == "R" ? reduction.targets : 1;
    EXPECT_EQ(Total(loads, &Load::contributed), (contributions - 1) * kElements * 8);
    EXPECT_EQ(Total(loads, &Load::results), copies * kElements * 8);
    const int group = job.ranks() - reduction.targets;
    EXPECT_LE(Imbalance(loads, group, &Load::sent), 1.1);
    EXPECT_LE(Imbalance(loads, group, &Load::contributed), 1.1);
  }
}

// To the same ranks in shards: (P - 1) / P of what is contributed, and no copies at all.
TEST(ReductionBalanceTest, ReduceScatter) {
  for (int group = 2; group <= 9; ++group) {
    for (const char* dst : {"S(0)", "S(1)", "SS(1,3)"}) {
      const Job job = MakeJob({{group}, "P(sum)", group, dst, true}, DType::kF32, DType::kF32);
      SCOPED_TRACE(Describe(job));
      const std::vector<Load> loads = LoadsOf(job);
      EXPECT_EQ(Total(loads, &Load::contributed), (group - 1) * kElements * 4);
      EXPECT_EQ(Total(loads, &Load::sent), (group - 1) * kElements * 4);
      EXPECT_EQ(Total(loads, &Load::results), 0);
    }
  }
}

// To the same ranks in full: the same, and each result to the others.
TEST(ReductionBalanceTest, AllReduce) {
  for (int group = 2; group <= 9; ++group) {
    const Job job = MakeJob({{group}, "P(sum)", group, "R", true}, DType::kF32, DType::kF32);
    SCOPED_TRACE(Describe(job));
    const std::vector<Load> loads = LoadsOf(job);
    EXPECT_EQ(Total(loads, &Load::contributed), (group - 1) * kElements * 4);
    EXPECT_EQ(Total(loads, &Load::results), (group - 1) * kElements * 4);
    for (const auto what : {&Load::sent, &Load::contributed, &Load::results}) {
      EXPECT_LE(Imbalance(loads, group, what), 1.1);
    }
  }
}

// Beside as many targets or more on their node, sources only give: each target, or each group of
// equal ones, adds up all contributions to what it needs.
TEST(ReductionBalanceTest, TargetsOfTheNodeAddUpThemselves) {
  for (const std::string dst : {"R", "S(0)", "S(1)"}) {
    for (int group = 2; group <= 5; ++group) {
      for (const int targets : {group, group + 1, 8}) {
        Job job = MakeJob({{group}, "P(sum)", targets, dst.c_str()}, DType::kF32, DType::kBF16);
        job.node_of_rank.assign(job.node_of_rank.size(), 0);
        SCOPED_TRACE(Describe(job));
        const std::vector<Load> loads = LoadsOf(job);
        const int64_t copies = dst == "R" ? targets - 1 : 0;
        EXPECT_EQ(Total(loads, &Load::contributed), group * kElements * 4);
        EXPECT_EQ(Total(loads, &Load::results), copies * kElements * 2);
        EXPECT_LE(Imbalance(loads, group, &Load::sent), 1.1);
        EXPECT_LE(Imbalance(loads, targets, &Load::contributed, group), 1.1);
      }
    }
  }
}

// With fewer targets than sources on the node, the sources add up.
TEST(ReductionBalanceTest, FewTargetsOfTheNodeGetSums) {
  for (const char* dst : {"R", "S(0)"}) {
    Job job = MakeJob({{4}, "P(sum)", 3, dst}, DType::kF32, DType::kF32);
    job.node_of_rank.assign(job.node_of_rank.size(), 0);
    SCOPED_TRACE(Describe(job));
    const std::vector<Load> loads = LoadsOf(job);
    EXPECT_EQ(Total(loads, &Load::contributed), 3 * kElements * 4);
    EXPECT_LE(Imbalance(loads, 4, &Load::contributed), 1.1);
  }
}

// Some of the targets hold contributions, and reduce what they need; the rest falls to those that
// have less to do.
TEST(ReductionBalanceTest, TargetsThatOverlapTheGroup) {
  for (int group = 3; group <= 8; ++group) {
    for (int inside = 1; inside < group; ++inside) {
      Job job = MakeJob({{group}, "P(sum)", group, "S(0)"}, DType::kF32, DType::kF32);
      job.spec.tensors[0].dst = MakeLayout({group}, RankRange(group - inside, group), "S(0)");
      SCOPED_TRACE(Describe(job));
      const std::vector<Load> loads = LoadsOf(job);
      EXPECT_EQ(Total(loads, &Load::contributed), (group - 1) * kElements * 4);
      EXPECT_LE(Imbalance(loads, group, &Load::contributed), 1.1);
    }
  }
}

// On one node those others reduce what they need too.
TEST(ReductionBalanceTest, TargetsOfTheNodeOutsideTheGroup) {
  Job job = MakeJob({{4}, "P(sum)", 4, "S(0)"}, DType::kF32, DType::kF32);
  job.node_of_rank.assign(job.node_of_rank.size(), 0);
  job.spec.tensors[0].dst = MakeLayout({4}, RankRange(2, 4), "S(0)");
  const std::vector<Load> loads = LoadsOf(job);
  EXPECT_EQ(Total(loads, &Load::results), 0);
  for (int rank = 2; rank < 6; ++rank) {
    const int64_t rows = rank == 5 ? 1021 - 3 * 256 : 256;
    EXPECT_EQ(loads[static_cast<size_t>(rank)].contributed, (rank < 4 ? 3 : 4) * rows * 2053 * 4)
        << rank;
  }
}

}  // namespace
}  // namespace sluice
