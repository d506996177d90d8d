// How evenly replicas share the sending, against the least that their busiest one can send.
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/brute_layout.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "plan/job.h"
#include "plan/plan.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

using oracle::IndexList;
using oracle::Job;
using oracle::MakeLayout;
using oracle::MakeTensor;
using oracle::RankRange;

// Pieces smaller than this are not worth a message of their own, so a sender may exceed its share
// by half of it at either end.
constexpr double kRoundingBytes = 128 << 10;

using Lists = std::vector<IndexList>;

// The ranks that hold equal parts, by what they hold.
std::map<Lists, std::vector<int>> SourceParts(const TensorTransfer& tensor) {
  std::map<Lists, std::vector<int>> parts;
  for (const int rank : tensor.src.mesh.ranks()) {
    parts[*oracle::OwnedLists(tensor.src, tensor.shape, rank)].push_back(rank);
  }
  return parts;
}

// What each target rank needs.
std::map<int, Lists> TargetParts(const TensorTransfer& tensor) {
  std::map<int, Lists> parts;
  for (const int rank : tensor.dst.mesh.ranks()) {
    parts[rank] = *oracle::OwnedLists(tensor.dst, tensor.shape, rank);
  }
  return parts;
}

// Elements that the holders of a part must send to others, as who has an element keeps to its own.
int64_t ElementsNeeded(const Lists& part, const std::vector<int>& holders,
                       const std::map<int, Lists>& targets) {
  int64_t elements = 0;
  for (const auto& [rank, needed] : targets) {
    if (std::find(holders.begin(), holders.end(), rank) != holders.end()) continue;
    elements += oracle::CommonElements(part, needed);
  }
  return elements;
}

// A job of one large tensor whose nodes give no rank a reason to prefer another.
Job LargeJob(uint64_t seed) {
  oracle::Dice dice(seed);
  Job job;
  const auto ranks = static_cast<int>(dice.Between(2, 16));
  job.node_of_rank.assign(static_cast<size_t>(ranks), 0);
  if (dice.Chance(50)) job.node_of_rank = RankRange(0, ranks);
  std::vector<int> all = RankRange(0, ranks);
  dice.Shuffle(&all);
  const int64_t cut = dice.Between(1, ranks - 1);
  const bool disjoint = dice.Chance(50);
  const std::vector<int> src(all.begin(), disjoint ? all.begin() + cut : all.end());
  const std::vector<int> dst(disjoint ? all.begin() + cut : all.begin(), all.end());
  TensorTransfer tensor;
  tensor.name = "weight";
  tensor.shape = dice.Pick<std::vector<int64_t>>({{4096, 4096},
                                                  {14336, 4096},
                                                  {1021, 8191},
                                                  {64, 1024, 256},
                                                  {37, 1000, 1000},
                                                  {400000},
                                                  {4, 3, 5000, 900}});
  tensor.src_dtype = tensor.dst_dtype = dice.Pick<DType>({DType::kBF16, DType::kF32, DType::kF64});
  const auto dims = static_cast<int>(tensor.shape.size());
  tensor.src.mesh = oracle::RandomMesh(&dice, src);
  tensor.dst.mesh = oracle::RandomMesh(&dice, dst);
  tensor.src.placements = oracle::RandomPlacements(&dice, tensor.src.mesh, dims);
  tensor.dst.placements = oracle::RandomPlacements(&dice, tensor.dst.mesh, dims);
  tensor.src.order = oracle::RandomOrder(&dice, tensor.src.mesh);
  tensor.dst.order = oracle::RandomOrder(&dice, tensor.dst.mesh);
  job.spec.tensors.push_back(std::move(tensor));
  return job;
}

// Sent by `rank` of what it has itself, not passed on for others.
int64_t BytesFromSource(int rank, const Plan& plan) {
  int64_t bytes = 0;
  for (const Bucket& bucket : plan.buckets) {
    const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
    if (channel.src == rank) bytes += channel.child_count * bucket.bytes;
  }
  return bytes;
}

TEST(BalanceTest, BusiestSenderOfALargeTensorIsNearTheLowerBound) {
  int replicated = 0;
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(oracle::Thinned(400)); ++seed) {
    Job job = LargeJob(seed);
    job.relay = seed % 4 != 0;
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    const auto plans = PlanAllRanks(job).value();
    const TensorTransfer& tensor = job.spec.tensors[0];
    const std::map<int, Lists> targets = TargetParts(tensor);
    double needed_in_all = 0;
    for (const auto& [part, holders] : SourceParts(tensor)) {
      const auto needed = static_cast<double>(ElementsNeeded(part, holders, targets) *
                                              DTypeBytes(tensor.src_dtype));
      const double bound = needed / static_cast<double>(holders.size());
      for (const int rank : holders) {
        const auto bytes =
            static_cast<double>(BytesFromSource(rank, plans[static_cast<size_t>(rank)]));
        EXPECT_LE(bytes, bound * 1.05 + kRoundingBytes) << "rank " << rank;
      }
      needed_in_all += needed;
      replicated += holders.size() > 1 && needed > 0 ? 1 : 0;
    }
    double sent = 0;
    for (const Plan& plan : plans) sent += static_cast<double>(plan.sent_bytes);
    EXPECT_EQ(sent, needed_in_all);
  }
  EXPECT_GT(replicated, oracle::Thinned(200));
}

// With more targets than sources, the sources send each byte once, and the targets the rest.
TEST(BalanceTest, BroadcastLoadsNobodyWithMoreThanItsShare) {
  const double tensor_bytes = 4096.0 * 1024 * 4;
  for (int sources = 1; sources <= 4; ++sources) {
    for (int targets = sources + 1; targets <= 9; ++targets) {
      Job job;
      job.node_of_rank = RankRange(0, sources + targets);
      job.spec.tensors.push_back(MakeTensor(
          "weight", {4096, 1024}, DType::kF32, MakeLayout({sources}, RankRange(0, sources), "R"),
          MakeLayout({targets}, RankRange(sources, targets), "R")));
      SCOPED_TRACE(Describe(job));
      const auto plans = PlanAllRanks(job).value();
      double sent = 0;
      for (int rank = 0; rank < job.ranks(); ++rank) {
        const auto bytes = static_cast<double>(plans[static_cast<size_t>(rank)].sent_bytes);
        const double bound = rank < sources ? tensor_bytes / sources : tensor_bytes;
        EXPECT_LE(bytes, bound * 1.05 + kRoundingBytes) << "rank " << rank;
        sent += bytes;
      }
      EXPECT_EQ(sent, tensor_bytes * targets);
    }
  }
}

// What holders give to targets of their own node leaves no port busy: all of them share the rest,
// which crosses once.
TEST(BalanceTest, SendersShareWhatCrosses) {
  Job job;
  job.node_of_rank = {0, 0, 1, 1, 0, 2, 2, 2};
  job.spec.tensors.push_back(MakeTensor("weight", {4096, 1024}, DType::kF32,
                                        MakeLayout({4}, RankRange(0, 4), "R"),
                                        MakeLayout({4}, RankRange(4, 4), "R")));
  const auto plans = PlanAllRanks(job).value();
  const double tensor_bytes = 4096.0 * 1024 * 4;
  for (size_t rank = 0; rank < 4; ++rank) {
    const double near = rank < 2 ? tensor_bytes / 2 : 0;  // half of what the target of node 0 needs
    EXPECT_NEAR(static_cast<double>(plans[rank].sent_bytes), near + tensor_bytes / 4,
                tensor_bytes / 80)
        << "rank " << rank;
  }
}

// The busiest of the `senders`, over their mean.
double Imbalance(const Job& job, const std::vector<int>& senders) {
  const auto plans = PlanAllRanks(job);
  EXPECT_TRUE(plans.ok()) << plans.status();
  int64_t total = 0;
  int64_t busiest = 0;
  for (const int rank : senders) {
    const int64_t sent = (*plans)[static_cast<size_t>(rank)].sent_bytes;
    total += sent;
    busiest = std::max(busiest, sent);
  }
  return static_cast<double>(busiest) * static_cast<double>(senders.size()) /
         static_cast<double>(total);
}

// Tensors too small to be cut: `shape(i)` gives the shape of the i-th.
template <typename Shape>
Job SmallTensorsJob(int tensors, const Layout& src, const Layout& dst, Shape shape) {
  Job job;
  job.node_of_rank.assign(16, 0);
  for (int i = 0; i < tensors; ++i) {
    job.spec.tensors.push_back(
        MakeTensor(absl::StrCat("norm.", i), shape(i), DType::kBF16, src, dst));
  }
  return job;
}

TEST(BalanceTest, EqualSmallTensorsTakeTurns) {
  const Layout src = MakeLayout({8}, RankRange(0, 8), "R");
  const auto shape = [](int) { return std::vector<int64_t>{4096}; };
  for (const int targets : {1, 3, 8}) {
    const Layout dst = MakeLayout({targets}, RankRange(8, targets), "R");
    EXPECT_LE(Imbalance(SmallTensorsJob(512, src, dst, shape), RankRange(0, 8)), 1.01) << targets;
  }
}

TEST(BalanceTest, SmallTensorsOfTwoAlternatingShapesTakeTurns) {
  const Layout src = MakeLayout({8}, RankRange(0, 8), "R");
  const Layout dst = MakeLayout({1}, {8}, "R");
  const auto shape = [](int i) { return std::vector<int64_t>{i % 2 == 0 ? 8192 : 128}; };
  EXPECT_LE(Imbalance(SmallTensorsJob(512, src, dst, shape), RankRange(0, 8)), 1.05);
}

TEST(BalanceTest, SmallTensorsOfRandomShapesStayNearTheMean) {
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(oracle::Thinned(50)); ++seed) {
    oracle::Dice dice(seed);
    const auto targets = static_cast<int>(dice.Between(1, 8));
    const Layout src = MakeLayout({4, 2}, RankRange(0, 8), "R,R");
    const Layout dst = MakeLayout({targets}, RankRange(8, targets), "R");
    const auto shape = [&dice](int) { return std::vector<int64_t>{dice.Between(1, 16000)}; };
    EXPECT_LE(Imbalance(SmallTensorsJob(1000, src, dst, shape), RankRange(0, 8)), 1.2)
        << "seed " << seed;
  }
}

TEST(BalanceTest, SmallShardedTensorsUseEveryReplica) {
  const Layout src = MakeLayout({4, 2}, RankRange(0, 8), "R,S(0)");
  const Layout dst = MakeLayout({8}, RankRange(8, 8), "S(0)");
  const auto shape = [](int) { return std::vector<int64_t>{4096}; };
  EXPECT_LE(Imbalance(SmallTensorsJob(512, src, dst, shape), RankRange(0, 8)), 1.01);
}

}  // namespace
}  // namespace sluice
