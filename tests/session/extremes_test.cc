// Sizes at their extremes, and those that a session chooses by itself.
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

// Runs `spec` three times on `size` ranks.
void RunJobOn(int size, const TransferSpec& spec, const SessionOptions& options) {
  RunRanks(size, [&](Rank& self) { RunJob(self, {options, {spec}}, 11); });
}

SessionOptions OneTinySlot() {
  return {.bucket_bytes = 16, .max_in_flight = 1, .budget_bytes = 16};
}

TEST(ExtremesTest, ThousandsOfTensors) {
  oracle::Dice dice(5);
  TransferSpec spec;
  const Layout rows = MakeLayout({16}, Ranks(0, 16), "S(0)");
  const Layout blocks = MakeLayout({4, 4}, Ranks(0, 16), "S(1),R");
  for (int t = 0; t < oracle::Sampled(2000); ++t) {
    spec.tensors.push_back(Moved(absl::StrCat("t", t), {dice.Between(0, 20), dice.Between(0, 6)},
                                 DType::kBF16, t % 2 == 0 ? rows : blocks,
                                 t % 3 == 0 ? rows : blocks));
  }
  SessionOptions options = {.bucket_bytes = 4096};
  RunJobOn(16, spec, options);
  options.bucket_bytes = 256;
  options.budget_bytes = 256;
  RunJobOn(16, spec, options);
}

// More copies than a device takes at once, in one stage of one bucket: packed, unpacked, reduced.
TEST(ExtremesTest, ThousandsOfChunksInOneBucket) {
  constexpr int kTensors = oracle::kSanitized ? 1000 : 5000;
  for (const char* placement : {"R", "P(sum)"}) {
    TransferSpec spec;
    for (int t = 0; t < kTensors; ++t) {
      spec.tensors.push_back(Moved(absl::StrCat("t", t), {3}, DType::kI32,
                                   MakeLayout({2}, {0, 1}, placement), MakeLayout({1}, {2}, "R")));
    }
    RunJobOn(3, spec, SessionOptions());
  }
}

TEST(ExtremesTest, TheSmallestBucketAndBudget) {
  TransferSpec spec = AllToAll(16, 64);
  spec.tensors.push_back(OverlappingMeshes(16).tensors[0]);
  spec.tensors[1].shape = {50, 7};
  RunJobOn(16, spec, OneTinySlot());
}

TEST(ExtremesTest, NothingToMove) {
  RunJobOn(3, {}, OneTinySlot());
  TransferSpec empty = AllToAll(3, 1024);
  empty.tensors[0].shape = {0, 100};
  empty.tensors.push_back(empty.tensors[0]);
  empty.tensors[1].shape = {5, 0, 3};
  RunJobOn(3, empty, OneTinySlot());
}

TEST(ExtremesTest, EightDimensions) {
  TransferSpec spec = Ring(4, 1);
  spec.tensors[0].shape = {2, 3, 2, 1, 3, 2, 2, 3};
  spec.tensors[0].src = MakeLayout({2, 2}, Ranks(0, 4), "S(7),SS(4,2)");
  spec.tensors[0].dst = MakeLayout({2, 2}, {3, 1, 2, 0}, "SS(1,3),S(0)");
  RunJobOn(4, spec, {.bucket_bytes = 72});
}

TEST(ExtremesTest, TransfersThatGrowShareOneSession) {
  RunSessions(4, {.bucket_bytes = 1 << 16, .budget_buckets = kNoLimit},
              [](Rank&, Session* session) {
                std::vector<Bound> bounds;
                constexpr int64_t kLargest = oracle::kSanitized ? 20000 : 200000;
                for (const int64_t block_bytes :
                     {int64_t{64}, int64_t{128}, int64_t{4096}, int64_t{512}, kLargest}) {
                  bounds.push_back(CompileBound(session, AllToAll(4, block_bytes), 3));
                  for (size_t i = 0; i < bounds.size(); ++i) RunOnce(session, &bounds[i], i);
                }
              });
}

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
  RunSessions(kSize, {}, [](Rank&, Session* session) {
    EXPECT_EQ(session->slots(), 16);
    EXPECT_EQ(session->slot_bytes(), 8 * kMiB);
    std::vector<Bound> bounds;
    for (const TransferSpec& spec : {Shift(64 * kKiB, true), Shift(kMiB, false),
                                     Shift(kMiB + 4096, true), AllToAll(kSize, 512)}) {
      bounds.push_back(CompileBound(session, spec));
    }
    EXPECT_EQ(bounds[0].transfer->stats().bucket_bytes, 256 * kKiB);
    EXPECT_GE(bounds[1].transfer->stats().bucket_bytes, kMiB);
    EXPECT_EQ(bounds[2].transfer->stats().bucket_bytes, 256 * kKiB);
    for (uint64_t round = 0; round < static_cast<uint64_t>(oracle::Sampled(3)); ++round) {
      for (Bound& bound : bounds) {
        session->ResetCounters();
        RunOnce(session, &bound, round);
        ExpectWithinLimits(*session);
        const SessionCounters counters = session->counters();
        const TransferStats& stats = bound.transfer->stats();
        EXPECT_LE(counters.staging_bytes_peak, counters.buckets_peak * stats.bucket_bytes);
        EXPECT_LE(counters.staging_bytes_peak, stats.peak_bytes_without_budget);
      }
    }
  });
}

// Runs of both kinds at once, in channels that they share.
TEST(AutoTest, RunsWithDifferentKnobsGoOnSideBySide) {
  RunSessions(kSize, {.budget_buckets = 3}, [](Rank&, Session* session) {
    Bound staged = CompileBound(session, Shift(kLong, true));
    Bound ready = CompileBound(session, Shift(kLong, false));
    EXPECT_LT(staged.transfer->stats().bucket_bytes, ready.transfer->stats().bucket_bytes);
    for (uint64_t round = 0; round < static_cast<uint64_t>(oracle::Sampled(4)); ++round) {
      std::vector<sluice::Run> runs;
      for (Bound* bound : {&staged, &ready}) {
        bound->memory.Prepare(round);
        const auto run =
            session->Start(bound->transfer, bound->memory.src(), bound->memory.dst()).value();
        runs.push_back(run);
      }
      for (const auto& run : runs) ASSERT_TRUE(run.Wait().ok());
      EXPECT_EQ(staged.memory.Check(round), "");
      EXPECT_EQ(ready.memory.Check(round), "");
    }
    ExpectWithinLimits(*session);
  });
}

TEST(AutoTest, OneSlotIsEnough) {
  RunSessions(kSize, {.budget_buckets = 1}, [](Rank& self, Session* session) {
    std::vector<Bound> bounds;
    for (const TransferSpec& spec :
         {AllToAll(kSize, 512), Shift(kLong, true), OverlappingMeshes(kSize)}) {
      bounds.push_back(CompileBound(session, spec));
    }
    for (Bound& bound : bounds) {
      for (int late = 0; late < oracle::Sampled(kSize); ++late) {
        RunWithLateRank(self, session, &bound, static_cast<uint64_t>(late), late);
      }
    }
    EXPECT_EQ(session->counters().buckets_peak, 1);
    ExpectWithinLimits(*session);
  });
}

}  // namespace
}  // namespace sluice::session_test
