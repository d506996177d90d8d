// Automatic knobs in whole jobs: each transfer has its own, in one session's staging.
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

constexpr int kSize = 4;
constexpr int64_t kKiB = 1 << 10;
constexpr int64_t kMiB = 1 << 20;
// What is checked of knobs needs no more bytes; what is looked for without sanitizers may.
constexpr int64_t kLong = oracle::kSanitized ? kMiB : 3 * kMiB;

// Each rank sends `bytes` as they cross to the next one, cast on the way, which takes staging; or
// as they lie.
TransferSpec Shift(int64_t bytes, bool cast) {
  TransferSpec spec = Ring(kSize, 1);
  TensorTransfer& tensor = spec.tensors[0];
  tensor.src_dtype = DType::kF32;
  tensor.dst_dtype = cast ? DType::kBF16 : DType::kF32;
  tensor.shape[0] = kSize * bytes / (tensor.shape[1] * (cast ? 2 : 4));
  return spec;
}

TEST(AutoTest, TransfersOfDifferentSizesShareASession) {
  RunRanks(kSize, [](Rank& self) {
    const std::unique_ptr<Session> session = OpenSession(self, SessionOptions());
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->slots(), 16);
    EXPECT_EQ(session->slot_bytes(), 8 * kMiB);
    std::vector<Bound> bounds;
    for (const TransferSpec& spec : {Shift(64 * kKiB, true), Shift(kMiB, false),
                                     Shift(kMiB + 4096, true), AllToAll(kSize, 512)}) {
      bounds.push_back(CompileBound(session.get(), spec));
      ASSERT_NE(bounds.back().transfer, nullptr);
    }
    EXPECT_EQ(bounds[0].transfer->stats().bucket_bytes, 256 * kKiB);
    EXPECT_GE(bounds[1].transfer->stats().bucket_bytes, kMiB);
    EXPECT_EQ(bounds[2].transfer->stats().bucket_bytes, 256 * kKiB);
    for (uint64_t round = 0; round < static_cast<uint64_t>(oracle::Sampled(3)); ++round) {
      for (Bound& bound : bounds) {
        session->ResetCounters();
        RunOnce(session.get(), &bound, round);
        ExpectWithinLimits(*session);
        const SessionCounters counters = session->counters();
        const TransferStats& stats = bound.transfer->stats();
        EXPECT_LE(counters.staging_bytes_peak, counters.buckets_peak * stats.bucket_bytes);
        EXPECT_LE(counters.staging_bytes_peak, stats.peak_bytes_without_budget);
      }
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

// Runs of both kinds at once, in channels that they share.
TEST(AutoTest, RunsWithDifferentKnobsGoOnSideBySide) {
  RunRanks(kSize, [](Rank& self) {
    SessionOptions options;
    options.budget_buckets = 3;
    const std::unique_ptr<Session> session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    Bound staged = CompileBound(session.get(), Shift(kLong, true));
    Bound ready = CompileBound(session.get(), Shift(kLong, false));
    ASSERT_TRUE(staged.transfer != nullptr && ready.transfer != nullptr);
    EXPECT_LT(staged.transfer->stats().bucket_bytes, ready.transfer->stats().bucket_bytes);
    for (uint64_t round = 0; round < static_cast<uint64_t>(oracle::Sampled(4)); ++round) {
      std::vector<sluice::Run> runs;
      for (Bound* bound : {&staged, &ready}) {
        bound->memory.Prepare(round);
        const auto run = session->Start(bound->transfer, bound->memory.src(), bound->memory.dst());
        ASSERT_TRUE(run.ok()) << run.status();
        runs.push_back(*run);
      }
      for (const auto& run : runs) ASSERT_TRUE(run.Wait().ok());
      EXPECT_EQ(staged.memory.Check(round), "");
      EXPECT_EQ(ready.memory.Check(round), "");
    }
    ExpectWithinLimits(*session);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(AutoTest, OneSlotIsEnough) {
  RunRanks(kSize, [](Rank& self) {
    SessionOptions options;
    options.budget_buckets = 1;
    const std::unique_ptr<Session> session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    std::vector<Bound> bounds;
    for (const TransferSpec& spec :
         {AllToAll(kSize, 512), Shift(kLong, true), OverlappingMeshes(kSize)}) {
      bounds.push_back(CompileBound(session.get(), spec));
      ASSERT_NE(bounds.back().transfer, nullptr);
    }
    for (Bound& bound : bounds) {
      for (int late = 0; late < oracle::Sampled(kSize); ++late) {
        RunWithLateRank(self, session.get(), &bound, static_cast<uint64_t>(late), late);
      }
    }
    EXPECT_EQ(session->counters().buckets_peak, 1);
    ExpectWithinLimits(*session);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(AutoTest, ASmallBudgetIsShared) {
  RunRanks(kSize, [](Rank& self) {
    SessionOptions options;
    options.budget_bytes = 1 << 20;
    const std::unique_ptr<Session> session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->slots(), 16);
    EXPECT_EQ(session->slot_bytes(), 64 * kKiB);
    Bound bound = CompileBound(session.get(), Shift(2 * kMiB, true));
    ASSERT_NE(bound.transfer, nullptr);
    EXPECT_EQ(bound.transfer->stats().bucket_bytes, 64 * kKiB);
    RunOnce(session.get(), &bound, 0);
    EXPECT_LE(session->counters().staging_bytes_peak, 1 << 20);
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
