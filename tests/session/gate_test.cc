// Transfers through the gate: within every budget, in lane order, with many small chunks, and at
// random.
#include <cstdint>

#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

class OneSlotTest : public testing::TestWithParam<int> {
 protected:
  void Run(const TransferSpec& spec) {
    RunRanks(GetParam(), [&](Rank& self) { RunThroughOneSlot(self, spec); });
  }
};

TEST_P(OneSlotTest, Ring) { Run(Ring(GetParam(), 24)); }
TEST_P(OneSlotTest, AllToAll) { Run(AllToAll(GetParam(), 80 << 10)); }
TEST_P(OneSlotTest, OverlappingMeshes) { Run(OverlappingMeshes(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Ranks, OneSlotTest,
                         testing::ValuesIn(oracle::JobSizes({1, 2, 3, 5, 8, 16})),
                         testing::PrintToStringParamName());

// What rank 0 holds when it goes as far as it can before anybody else starts.
SessionCounters HeldAlone(int size, const SessionOptions& options, const TransferSpec& spec,
                          TransferStats* stats) {
  SessionCounters held;
  RunRanks(size, [&](Rank& self) {
    const std::unique_ptr<Session> session = OpenSession(self, options);
    Bound bound = CompileBound(session.get(), spec);
    RunOnce(session.get(), &bound, 0);
    ExpectWithinLimits(*session);
    // Everybody has finished the first run, which compares; the second does not.
    self.meet();
    session->ResetCounters();
    bound.memory.Prepare(1);
    if (self.rank != 0) self.meet();
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst()).value();
    if (self.rank == 0) {
      for (int i = 0; i < 100; ++i) ASSERT_TRUE(session->Poll().ok());
      held = session->counters();
      *stats = bound.transfer->stats();
      self.meet();
    }
    ASSERT_TRUE(run.Wait().ok());
    ExpectWithinLimits(*session);
    EXPECT_EQ(bound.memory.Check(1), "");
  });
  return held;
}

TEST(PeakTest, ReachesTheBudget) {
  for (int64_t slots : {1, 2, 3, 7, 16}) {
    SessionOptions options;
    options.bucket_bytes = 256;  // two rows of a block, too short to cross as they lie
    options.max_in_flight = 3;
    options.budget_buckets = slots;
    options.budget_bytes = kNoLimit;
    TransferStats stats;
    const SessionCounters held = HeldAlone(8, options, AllToAll(8, 1024), &stats);
    EXPECT_GT(stats.peak_buckets_without_budget, slots);
    // A rank's own bucket may be among the smallest ones; it ends by itself.
    EXPECT_EQ(held.buckets_peak, slots);
    EXPECT_LE(held.staging_bytes_peak, slots * *options.bucket_bytes);
    EXPECT_GT(held.staging_bytes_peak, 0);
    EXPECT_GT(held.waited_for_budget, 0);
  }
}

TEST(PeakTest, WithoutABudgetReachesWhatWasForetold) {
  for (int max_in_flight : {1, 2, 5, 1000}) {
    const SessionOptions options = {.bucket_bytes = 4096,
                                    .max_in_flight = max_in_flight,
                                    .budget_buckets = kNoLimit,
                                    .budget_bytes = kNoLimit};
    TransferStats stats;
    // Rank 0 sends to one rank and receives from another, so nothing of it ends before they start.
    const SessionCounters held = HeldAlone(3, options, Ring(3, 24), &stats);
    EXPECT_EQ(held.buckets_peak, stats.peak_buckets_without_budget);
    EXPECT_EQ(held.staging_bytes_peak, stats.peak_bytes_without_budget);
    EXPECT_EQ(held.operations_peak, stats.peak_buckets_without_budget);
    EXPECT_EQ(stats.peak_buckets_without_budget, 2 * std::min(max_in_flight, 48));
  }
}

TEST(PeakTest, ForetoldStagingIsReachedToo) {
  const SessionOptions options = {.bucket_bytes = 4096,
                                  .max_in_flight = 4,
                                  .budget_buckets = kNoLimit,
                                  .budget_bytes = kNoLimit};
  // From rows on ranks 0-3 to columns on ranks 4-7: sources need staging.
  TransferSpec spec = AllToAll(8, 8192);
  spec.tensors[0].src = MakeLayout({4}, Ranks(0, 4), "S(0)");
  spec.tensors[0].dst = MakeLayout({4}, Ranks(4, 8), "S(1)");
  TransferStats stats;
  const SessionCounters held = HeldAlone(8, options, spec, &stats);
  EXPECT_EQ(stats.peak_buckets_without_budget, 4 * 4);
  EXPECT_EQ(held.buckets_peak, stats.peak_buckets_without_budget);
  EXPECT_EQ(held.staging_bytes_peak, stats.peak_bytes_without_budget);
  EXPECT_EQ(held.staging_bytes_peak, 4 * 4 * 4096);
}

constexpr int kSize = 6;

TEST(ApartTest, ThereIsABucketForEachChunk) {
  TransferSpec spec = AllToAll(kSize, 64);
  spec.tensors.push_back(spec.tensors[0]);
  for (const bool coalesce : {true, false}) {
    RunSessions(kSize, {.coalesce = coalesce}, [&](Rank&, Session* session) {
      Bound bound = CompileBound(session, spec);
      // To each rank, itself included, a chunk of each tensor.
      EXPECT_EQ(bound.transfer->stats().buckets_as_source, coalesce ? kSize : 2 * kSize);
    });
  }
}

TEST(ApartTest, EveryByteOfRandomTransfersIsRight) {
  for (const uint64_t seed : oracle::Seeds(60)) {
    RandomJob job = MakeRandomJob(seed, kSize);
    job.options.coalesce = false;
    job.options.budget_buckets = seed % 2 == 0 ? 1 : 8;
    RunRanks(kSize, [&](Rank& self) { RunJob(self, job, seed); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

class RandomTransferTest : public testing::TestWithParam<int> {};

TEST_P(RandomTransferTest, EveryByteIsRight) {
  const int size = GetParam();
  for (const uint64_t seed : oracle::Seeds(960 / (size + 3))) {
    const RandomJob job = MakeRandomJob(seed * 100 + static_cast<uint64_t>(size), size);
    RunRanks(size, [&](Rank& self) { RunJob(self, job, seed); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RandomTransferTest,
                         testing::ValuesIn(oracle::JobSizes({1, 2, 3, 5, 8, 16})),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace sluice::session_test
