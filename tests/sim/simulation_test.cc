// Whole jobs in simulated time: limits are kept and reached, everything arrives, equal input gives
// equal output, and simple jobs take the time that can be worked out by hand.
#include "sim/simulation.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "session/specs.h"
#include "sim/families.h"

namespace sluice::sim {
namespace {

using session_test::AllToAll;
using session_test::MakeLayout;

Job JobOf(TransferSpec spec, int ranks, int64_t bucket_bytes = int64_t{8} << 20) {
  Job job;
  job.name = "test";
  job.spec = std::move(spec);
  job.ranks = ranks;
  job.bucket_bytes = bucket_bytes;
  for (int rank = 0; rank < ranks; ++rank) job.node_of_rank.push_back(rank);
  return job;
}

SimulationOptions Options(int64_t budget) {
  SimulationOptions options;
  options.budget_buckets = budget;
  return options;
}

SimulationOutcome Simulated(const JobPlans& plans, const SimulationOptions& options) {
  absl::StatusOr<SimulationOutcome> outcome = Simulate(plans, options);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  if (!outcome.ok()) return {};
  EXPECT_FALSE(outcome->stalled()) << outcome->stall;
  return *std::move(outcome);
}

int64_t Parts(const JobPlans& plans) {
  int64_t parts = 0;
  for (int rank = 0; rank < plans.ranks(); ++rank) {
    parts += static_cast<int64_t>(plans.plan(rank).buckets.size());
  }
  return parts;
}

int32_t Peak(const SimulationOutcome& outcome) {
  int32_t most = 0;
  for (const RankOutcome& rank : outcome.ranks) most = std::max(most, rank.peak_buckets);
  return most;
}

// A tensor of `elements` from rank 0 to rank 1.
TransferSpec OneTensor(int64_t elements, DType src, DType dst) {
  TensorTransfer tensor;
  tensor.shape = {elements};
  tensor.src_dtype = src;
  tensor.dst_dtype = dst;
  tensor.src = MakeLayout({1}, {0}, "R");
  tensor.dst = MakeLayout({1}, {1}, "R");
  TransferSpec spec;
  spec.tensors.push_back(std::move(tensor));
  return spec;
}

TEST(SimulationTest, OneBucketTakesLatencyAndItsBytes) {
  const JobPlans plans =
      JobPlans::Make(JobOf(OneTensor(1 << 20, DType::kF32, DType::kF32), 2)).value();
  SimulationOptions options = Options(1);
  options.network.port_rate = 1e9;
  options.network.latency = 2e-6;
  const SimulationOutcome outcome = Simulated(plans, options);
  const TimePs wire = TimePs{4 << 20} * 1000;
  EXPECT_EQ(outcome.makespan, 2000000 + wire);
  EXPECT_EQ(outcome.link_bound, wire);
  EXPECT_EQ(outcome.ranks[0].peak_bytes, 0);  // it crosses as it lies
}

TEST(SimulationTest, CopiesTakeTime) {
  // f32 to bf16: packed at the source, received in place.
  const JobPlans plans =
      JobPlans::Make(JobOf(OneTensor(1 << 20, DType::kF32, DType::kBF16), 2)).value();
  SimulationOptions options = Options(1);
  options.network.port_rate = 1e9;
  options.network.latency = 0;
  options.network.copy_rate = 2e9;
  options.network.copy_latency = 7e-6;
  const SimulationOutcome outcome = Simulated(plans, options);
  EXPECT_EQ(outcome.makespan, 7000000 + TimePs{2 << 20} * 500 + TimePs{2 << 20} * 1000);
  EXPECT_EQ(outcome.ranks[0].peak_bytes, 2 << 20);
  EXPECT_EQ(outcome.ranks[1].peak_bytes, 0);
}

TEST(SimulationTest, ABudgetOfOneKeepsPackingFromOverlapping) {
  // Two buckets: pack, send, pack, send; with two slots the second pack hides behind the first
  // send.
  const JobPlans plans =
      JobPlans::Make(JobOf(OneTensor(1 << 20, DType::kF32, DType::kBF16), 2, 1 << 20)).value();
  SimulationOptions options = Options(1);
  options.network.port_rate = 1e9;
  options.network.latency = 0;
  options.network.copy_rate = 2e9;
  options.network.copy_latency = 0;
  const TimePs send = TimePs{1 << 20} * 1000, pack = send / 2;
  EXPECT_EQ(Simulated(plans, options).makespan, 2 * (pack + send));
  options.budget_buckets = 2;
  EXPECT_EQ(Simulated(plans, options).makespan, pack + 2 * send);
}

TEST(SimulationTest, CopiesThatBlockKeepTheRankFromAllElse) {
  // Rank 0 packs what it sends before it looks at what rank 1 has for it.
  TransferSpec spec = OneTensor(1 << 20, DType::kF32, DType::kBF16);
  spec.tensors.push_back(OneTensor(1 << 20, DType::kF32, DType::kF32).tensors[0]);
  std::swap(spec.tensors[1].src, spec.tensors[1].dst);
  const JobPlans plans = JobPlans::Make(JobOf(std::move(spec), 2)).value();
  SimulationOptions options = Options(0);
  options.network.latency = 0;
  options.network.copy_rate = 4e9;
  options.network.copy_latency = 0;
  const TimePs pack = TimePs{2 << 20} * 250;
  const auto partner = static_cast<size_t>(HeldCause::kPartner);
  EXPECT_EQ(Simulated(plans, options).held[partner], pack);  // rank 1, for what is packed
  options.network.copies_block = true;
  EXPECT_EQ(Simulated(plans, options).held[partner], 2 * pack);
}

TEST(SimulationTest, WithCopiesThatBlockALocalBucketEndsBeforeTheNextBegins) {
  const JobPlans plans = JobPlans::Make(JobOf(AllToAll(8, 1024), 8, 256)).value();
  SimulationOptions options = Options(0);
  options.network.copies_block = true;
  const SimulationOutcome outcome = Simulated(plans, options);
  EXPECT_EQ(outcome.finished_parts, Parts(plans));
  EXPECT_LT(Peak(outcome), plans.plan(0).peak_buckets_without_budget);
  for (const int64_t budget : {1, 2, 3, 7}) {
    options.budget_buckets = budget;
    const SimulationOutcome narrow = Simulated(plans, options);
    EXPECT_EQ(narrow.finished_parts, Parts(plans));
    EXPECT_LE(Peak(narrow), budget);
  }
}

TEST(SimulationTest, BudgetsAreKeptAndReached) {
  const JobPlans plans = JobPlans::Make(JobOf(AllToAll(8, 1024), 8, 256)).value();
  for (const int64_t budget : {1, 2, 3, 7, 16}) {
    const SimulationOutcome outcome = Simulated(plans, Options(budget));
    EXPECT_EQ(Peak(outcome), budget);
    EXPECT_EQ(outcome.finished_parts, Parts(plans));
    for (const RankOutcome& rank : outcome.ranks) EXPECT_LE(rank.peak_bytes, budget * 256);
  }
  const SimulationOutcome free = Simulated(plans, Options(0));
  EXPECT_EQ(Peak(free), plans.plan(0).peak_buckets_without_budget);
}

// Many channels on one rank: all of them are open at once without a budget.
TEST(SimulationTest, OneRankGathersFromVeryMany) {
  constexpr int kRanks = 40'000;
  TensorTransfer tensor;
  tensor.shape = {2 * kRanks};
  tensor.src = MakeLayout({kRanks}, session_test::Ranks(0, kRanks), "S(0)");
  tensor.dst = MakeLayout({1}, {0}, "R");
  TransferSpec spec;
  spec.tensors.push_back(std::move(tensor));
  const JobPlans plans = JobPlans::Make(JobOf(std::move(spec), kRanks)).value();
  EXPECT_EQ(Peak(Simulated(plans, Options(0))), kRanks);
  EXPECT_EQ(Peak(Simulated(plans, Options(3))), 3);
}

TEST(SimulationTest, AKnownLookAheadOfOneStillFinishes) {
  const JobPlans plans = JobPlans::Make(JobOf(AllToAll(8, 1024), 8, 256)).value();
  SimulationOptions options = Options(4);
  options.look_ahead = 1;
  EXPECT_EQ(Simulated(plans, options).finished_parts, Parts(plans));
}

// A sum of two ranks that one of them needs.
Job SumOfTwo(std::vector<int> node_of_rank) {
  TransferSpec spec = OneTensor(1 << 12, DType::kF32, DType::kF32);
  spec.tensors[0].src = MakeLayout({2}, {0, 1}, "P(sum)");
  spec.tensors[0].dst = MakeLayout({1}, {0}, "R");
  Job job = JobOf(std::move(spec), 2);
  job.node_of_rank = std::move(node_of_rank);
  return job;
}

TEST(SimulationTest, AFoldTakesNoCopyAndNoSlotBetweenRanksOfANode) {
  SimulationOptions options = Options(1);
  options.network.port_rate = 1e9;
  options.network.latency = 2e-6;
  options.network.copy_rate = 2e9;
  options.network.copy_latency = 7e-6;
  const TimePs wire = 2000000 + TimePs{1 << 14} * 1000;
  const TimePs copy = 7000000 + TimePs{1 << 14} * 500;
  const JobPlans near = JobPlans::Make(SumOfTwo({0, 0})).value();
  for (const bool folds : {true, false}) {
    options.network.folds = folds;
    const SimulationOutcome outcome = Simulated(near, options);
    // Otherwise its own contribution is added from where it lies, and the sum is copied out.
    EXPECT_EQ(outcome.makespan, folds ? wire : wire + 2 * copy) << folds;
    EXPECT_EQ(outcome.ranks[0].peak_bytes, folds ? 0 : 2 << 14) << folds;
    EXPECT_EQ(outcome.ranks[0].peak_operations, folds ? 3 : 1) << folds;
  }
  const JobPlans far = JobPlans::Make(SumOfTwo({0, 1})).value();
  const SimulationOutcome one_by_one = Simulated(far, options);
  options.network.folds = true;
  EXPECT_EQ(Simulated(far, options).makespan, one_by_one.makespan);
  EXPECT_GT(one_by_one.ranks[0].peak_bytes, 0);
}

// Casts, reductions, replicas, uneven shards and windows, on overlapping meshes.
TEST(SimulationTest, RandomJobsArriveWithEveryBudget) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 7);
    for (TransferSpec& spec : session_test::MakeRandomJob(seed, ranks).specs) {
      Job job = JobOf(std::move(spec), ranks, 1024);
      if (seed % 4 >= 2) {
        for (int& node : job.node_of_rank) node /= 3;
      }
      const JobPlans plans = JobPlans::Make(job).value();
      for (const int64_t budget : {0, 1, 2, 5}) {
        SimulationOptions options = Options(budget);
        options.max_in_flight = 1 + static_cast<int>(seed % 3);
        options.start_skew = seed % 2 == 0 ? 0 : 1e-4;
        options.seed = seed;
        options.network.folds = seed % 3 > 0;
        options.network.copies_block = seed % 5 == 0;
        const SimulationOutcome outcome = Simulated(plans, options);
        EXPECT_EQ(outcome.finished_parts, Parts(plans)) << "seed " << seed;
        EXPECT_GE(outcome.makespan, outcome.link_bound) << "seed " << seed;
        if (budget > 0) {
          EXPECT_LE(Peak(outcome), budget);
        }
      }
    }
  }
}

TEST(SimulationTest, EqualInputEqualOutput) {
  FamilyOptions family;
  family.ranks = 32;
  const JobPlans plans = JobPlans::Make(*MakeFamily("pp-ep-tp-dp", family)).value();
  SimulationOptions options = Options(4);
  options.start_skew = 1e-4;
  options.seed = 7;
  const SimulationOutcome first = Simulated(plans, options);
  const SimulationOutcome again = Simulated(plans, options);
  EXPECT_EQ(first.makespan, again.makespan);
  EXPECT_EQ(first.held, again.held);
  EXPECT_EQ(first.waits, again.waits);
  EXPECT_EQ(first.events, again.events);
  options.seed = 8;
  EXPECT_NE(Simulated(plans, options).makespan, first.makespan);
}

TEST(SimulationTest, CanBeStopped) {
  const JobPlans plans = JobPlans::Make(JobOf(AllToAll(8, 1024), 8, 256)).value();
  const absl::StatusOr<SimulationOutcome> outcome =
      Simulate(plans, Options(2), [](int64_t, int64_t) { return false; });
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->stopped);
  EXPECT_FALSE(outcome->stalled());
  EXPECT_LT(outcome->finished_parts, Parts(plans));
}

// Ranks that share plans move exactly as if each had its own.
TEST(SimulationTest, SharedPlansChangeNothing) {
  for (const char* name : {"all-to-all", "peers"}) {
    FamilyOptions family;
    family.ranks = 24;
    family.peers = 7;
    family.pair_bytes = 64 << 10;
    family.bucket_bytes = 16 << 10;
    Job job = *MakeFamily(name, family);
    ASSERT_GT(job.period, 0);
    const JobPlans shared = JobPlans::Make(job).value();
    job.period = 0;
    const JobPlans own = JobPlans::Make(job).value();
    EXPECT_EQ(shared.distinct_plans(), 8);
    EXPECT_EQ(own.distinct_plans(), 24);
    const SimulationOutcome a = Simulated(shared, Options(5));
    const SimulationOutcome b = Simulated(own, Options(5));
    EXPECT_EQ(a.makespan, b.makespan) << name;
    EXPECT_EQ(a.held, b.held) << name;
    EXPECT_EQ(a.events, b.events) << name;
  }
}

}  // namespace
}  // namespace sluice::sim
