// The figures of --plan-only against a count of all elements, and against plans.
#include "reshard/plan_figures.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "plan/crossings.h"
#include "plan/job.h"

namespace sluice::bench {
namespace {

using oracle::Job;
using oracle::MakeLayout;
using oracle::MakeTensor;
using oracle::RankRange;

double Most(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

bool Reduces(const Job& job) {
  return std::any_of(job.spec.tensors.begin(), job.spec.tensors.end(),
                     [](const TensorTransfer& tensor) { return IsReduced(tensor); });
}

PlanFigures Figures(const Job& job) {
  const auto figures = FiguresOf(job.spec, job.options());
  EXPECT_TRUE(figures.ok()) << figures.status();
  return figures.value_or(PlanFigures());
}

// Counts again what the routes say.
void ExpectRatiosOfRoutes(const Job& job, const PlanFigures& figures) {
  const oracle::LeastCrossings least = oracle::CountCrossings(job);
  double bytes = 0;
  std::vector<double> sent(job.node_of_rank.size()), received(job.node_of_rank.size());
  for (const RouteBytes& route : figures.routes) {
    const size_t src = static_cast<size_t>(route.src), dst = static_cast<size_t>(route.dst);
    if (job.node_of_rank[src] == job.node_of_rank[dst]) continue;
    bytes += static_cast<double>(route.bytes);
    sent[src] += static_cast<double>(route.bytes);
    received[dst] += static_cast<double>(route.bytes);
  }
  EXPECT_NEAR(figures.node_bytes_ratio * least.node_bytes, bytes, 1e-6 * bytes);
  EXPECT_NEAR(figures.busiest_src_ratio * Most(least.sent), Most(sent), 1e-6 * Most(sent));
  EXPECT_NEAR(figures.busiest_dst_ratio * Most(least.received), Most(received),
              1e-6 * Most(received));
  if (least.node_bytes == 0 && bytes == 0) {
    EXPECT_EQ(figures.node_bytes_ratio, 1);
    EXPECT_EQ(figures.busiest_src_ratio, 1);
    EXPECT_EQ(figures.busiest_dst_ratio, 1);
  }
  if (Reduces(job)) return;
  EXPECT_GE(bytes, least.node_bytes);
  EXPECT_GE(Most(received), Most(least.received) * (1 - 1e-9));
}

// What a rank passes on has come to it one hop before. All that plans send is on routes, and what
// comes to a rank is what it needs.
void ExpectRoutesOfAllBytes(const Job& job, const PlanFigures& figures) {
  std::set<std::pair<int, int>> had;  // rank and hop
  int64_t bytes = 0, sent = 0;
  std::vector<int64_t> stay(job.node_of_rank.size()), received;
  int hops_max = 0;
  for (const RouteBytes& route : figures.routes) {
    EXPECT_NE(route.src, route.dst);
    EXPECT_GT(route.bytes, 0);
    had.insert({route.dst, route.hop});
    hops_max = std::max(hops_max, route.hop);
    bytes += route.bytes;
    stay[static_cast<size_t>(route.dst)] += route.bytes;
  }
  EXPECT_EQ(figures.hops_max, hops_max);
  for (const RouteBytes& route : figures.routes) {
    EXPECT_TRUE(route.hop == 1 || had.contains({route.src, route.hop - 1}))
        << route.src << " -> " << route.dst << " hop " << route.hop;
  }
  for (const Plan& plan : oracle::Plans(job)) {
    sent += plan.sent_bytes;
    received.push_back(plan.received_bytes);
  }
  EXPECT_EQ(bytes, sent);
  if (!Reduces(job)) {
    EXPECT_EQ(stay, received);
  }
}

TEST(PlanFiguresTest, RandomJobs) {
  int crossing = 0, combining = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Job job = seed % 40 == 0   ? oracle::RandomLargeJob(seed)
                    : seed % 50 == 1 ? oracle::RandomReductionJob(seed)
                                     : oracle::RandomJob(seed);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    const PlanFigures figures = Figures(job);
    ExpectRatiosOfRoutes(job, figures);
    ExpectRoutesOfAllBytes(job, figures);
    if (HasFailure()) return;
    crossing += figures.node_bytes > 0 ? 1 : 0;
    combining += Reduces(job) && figures.node_bytes > 0 ? 1 : 0;
  }
  EXPECT_GT(crossing, 60);
  EXPECT_GT(combining, 12);
}

// Eight sources on one node, in which every element has as many holders; eight targets on another.
TEST(PlanFiguresTest, EachByteCrossesOnceAndAllRanksTakePart) {
  const struct {
    std::vector<int64_t> src_mesh;
    const char* src;
    std::vector<int64_t> dst_mesh;
    const char* dst;
  } cases[] = {{{8}, "R", {8}, "R"},
               {{4, 2}, "R,S(1)", {8}, "R"},
               {{2, 4}, "S(0),R", {2, 4}, "R,S(0)"},
               {{8}, "S(0)", {8}, "R"},
               {{8}, "R", {4, 2}, "S(1),R"},
               {{2, 4}, "P(sum),R", {8}, "R"},
               {{2, 4}, "P(sum),S(0)", {2, 4}, "R,S(1)"}};
  for (const auto& of : cases) {
    for (const int64_t slots : {0, 1, 8, 16}) {
      Job job;
      job.slots = slots;
      job.node_of_rank = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
      for (const char* name : {"first", "second"}) {
        job.spec.tensors.push_back(MakeTensor(name, {2048, 1024}, DType::kF32,
                                              MakeLayout(of.src_mesh, RankRange(0, 8), of.src),
                                              MakeLayout(of.dst_mesh, RankRange(8, 8), of.dst)));
      }
      SCOPED_TRACE(Describe(job));
      const PlanFigures figures = Figures(job);
      EXPECT_EQ(figures.node_bytes_ratio, 1);
      EXPECT_LE(figures.busiest_src_ratio, 1.05);
      EXPECT_LE(figures.busiest_dst_ratio, 1.05);
      EXPECT_LE(figures.hops_max, 3);
    }
  }
}

// Contributions on several nodes: one sum crosses from each to the next, then to the targets' node.
TEST(PlanFiguresTest, ContributionsCrossAsSumsOfTheirNodes) {
  const struct {
    std::vector<int> node_of_source;
    std::vector<int64_t> mesh;
    const char* src;
    int64_t crossings;  // of each element, the results' among them
  } cases[] = {{{0, 0, 1, 1}, {4}, "P(sum)", 2},
               {{0, 0, 0, 0, 1, 1, 1, 1}, {4, 2}, "P(max),S(0)", 2},
               {{0, 0, 1, 1, 2, 2}, {6}, "P(avg)", 3},
               {{0, 0, 0, 0, 1, 1, 1, 1}, {2, 2, 2}, "R,P(sum),S(1)", 1},
               {{0, 1, 1, 1, 2, 2}, {6}, "P(sum)", 3}};
  for (const auto& of : cases) {
    for (const int64_t slots : {0, 1, 8}) {
      Job job;
      job.slots = slots;
      job.node_of_rank = of.node_of_source;
      const int sources = static_cast<int>(of.node_of_source.size());
      job.node_of_rank.insert(job.node_of_rank.end(), {9, 9});
      job.spec.tensors.push_back(MakeTensor("gradient", {2048, 1024}, DType::kF32,
                                            MakeLayout(of.mesh, RankRange(0, sources), of.src),
                                            MakeLayout({2}, RankRange(sources, 2), "S(0)")));
      SCOPED_TRACE(Describe(job));
      const PlanFigures figures = Figures(job);
      EXPECT_EQ(figures.node_bytes, of.crossings * 2048 * 1024 * 4);
      EXPECT_EQ(figures.node_bytes_ratio, 1);
      EXPECT_LE(figures.busiest_dst_ratio, 1.05);
    }
  }
}

// Targets that contribute themselves: sums end on the last node, in the order of addition, and what
// others need goes back from there. So half as much more crosses as would without an order.
TEST(PlanFiguresTest, SumsComeBackToTargetsThatContribute) {
  const struct {
    std::vector<int64_t> mesh;
    const char* src;
    const char* dst;
    int nodes;  // of four ranks each
    double crossings;
    double bound;
  } cases[] = {
      {{8}, "P(sum)", "S(0)", 2, 1.5, 1},           {{8}, "P(avg)", "R", 2, 2, 2},
      {{2, 4}, "P(max),P(max)", "S(1)", 2, 1.5, 1}, {{2, 4}, "P(sum),P(sum)", "R", 2, 2, 2},
      {{16}, "P(sum)", "S(0)", 4, 3.75, 3},         {{16}, "P(sum)", "R", 4, 6, 6}};
  for (const auto& of : cases) {
    Job job;
    for (int rank = 0; rank < 4 * of.nodes; ++rank) job.node_of_rank.push_back(rank / 4);
    job.spec.tensors.push_back(
        MakeTensor("gradient", {2048, 1024}, DType::kF32,
                   MakeLayout(of.mesh, RankRange(0, job.ranks()), of.src),
                   MakeLayout({job.ranks()}, RankRange(0, job.ranks()), of.dst)));
    SCOPED_TRACE(Describe(job));
    const PlanFigures figures = Figures(job);
    EXPECT_EQ(static_cast<double>(figures.node_bytes), of.crossings * 2048 * 1024 * 4);
    EXPECT_DOUBLE_EQ(figures.node_bytes_ratio, of.crossings / of.bound);
    EXPECT_LE(figures.busiest_src_ratio, 2);
    EXPECT_LE(figures.busiest_dst_ratio, 2);
    job.relay = false;
    EXPECT_GE(static_cast<double>(Figures(job).node_bytes), 4 * 2048 * 1024 * 4);
  }
}

// Of little, sums cross between two nodes, but are not handed on from node to node.
TEST(PlanFiguresTest, SmallContributionsDoNotWaitForManyNodes) {
  for (const int nodes : {2, 3}) {
    Job job;
    for (int rank = 0; rank < 2 * nodes; ++rank) job.node_of_rank.push_back(rank / 2);
    job.node_of_rank.push_back(nodes);
    job.spec.tensors.push_back(
        MakeTensor("gradient", {64, 64}, DType::kF32,
                   MakeLayout({2 * nodes}, RankRange(0, 2 * nodes), "P(sum)"),
                   MakeLayout({1}, {2 * nodes}, "R")));
    // Owners are of one node, or of all; each gets what others have, and sends what it adds up.
    const int64_t crossings = nodes == 2 ? 1 : 2 * (nodes - 1);
    EXPECT_EQ(Figures(job).node_bytes, (crossings + 1) * 64 * 64 * 4);
  }
}

// Several nodes on both sides, and targets on a node that has the bytes.
TEST(PlanFiguresTest, EachByteCrossesOnceToEachOfSeveralNodes) {
  Job job;
  job.node_of_rank = {0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 0};
  job.spec.tensors.push_back(MakeTensor("weight", {2048, 1024}, DType::kF32,
                                        MakeLayout({4}, RankRange(0, 4), "R"),
                                        MakeLayout({9}, RankRange(4, 9), "R")));
  const PlanFigures figures = Figures(job);
  EXPECT_EQ(figures.node_bytes_ratio, 1);
  EXPECT_LE(figures.busiest_src_ratio, 1.05);
  EXPECT_LE(figures.busiest_dst_ratio, 1.05);
  EXPECT_EQ(figures.hops_max, 2);
}

// Two holders, three targets on another node: 4 MiB of 1024 rows. One by one the targets are laid
// on a line of 12 MiB, of which each holder sends half.
TEST(PlanFiguresTest, WithoutRelaysEachTargetGetsItsBytesAcross) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  Job job;
  job.node_of_rank = {0, 0, 1, 1, 1};
  job.spec.tensors.push_back(MakeTensor("weight", {1024, 1024}, DType::kF32,
                                        MakeLayout({2}, {0, 1}, "R"),
                                        MakeLayout({3}, {2, 3, 4}, "R")));
  EXPECT_EQ(Figures(job).node_bytes, 4 * kMiB);
  EXPECT_EQ(Figures(job).hops_max, 2);
  job.relay = false;
  const PlanFigures figures = Figures(job);
  EXPECT_EQ(figures.node_bytes, 12 * kMiB);
  EXPECT_DOUBLE_EQ(figures.node_bytes_ratio, 3);
  EXPECT_DOUBLE_EQ(figures.busiest_src_ratio, 3);
  EXPECT_DOUBLE_EQ(figures.busiest_dst_ratio, 3);
  EXPECT_EQ(figures.hops_max, 1);
  const std::vector<RouteBytes> routes = {
      {0, 2, 4 * kMiB, 1}, {0, 3, 2 * kMiB, 1}, {1, 3, 2 * kMiB, 1}, {1, 4, 4 * kMiB, 1}};
  EXPECT_EQ(figures.routes, routes);
}

TEST(PlanFiguresTest, LittleIsNotRelayed) {
  Job job;
  job.node_of_rank = {0, 0, 1, 1};
  job.spec.tensors.push_back(MakeTensor("norm", {1024}, DType::kF32, MakeLayout({2}, {0, 1}, "R"),
                                        MakeLayout({2}, {2, 3}, "R")));
  EXPECT_EQ(Figures(job).hops_max, 1);
}

}  // namespace
}  // namespace sluice::bench
