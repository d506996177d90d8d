// Jobs at the edges: many tensors, none, empty ones, ranks with nothing to do, the smallest bucket.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

// Runs `spec` three times on `size` ranks.
void RunJobOn(int size, const TransferSpec& spec, const SessionOptions& options) {
  RunRanks(size, [&](Rank& self) { RunJob(self, {options, {spec}}, 11); });
}

SessionOptions OneTinySlot() {
  SessionOptions options;
  options.bucket_bytes = 16;
  options.budget_bytes = 16;
  options.max_in_flight = 1;
  return options;
}

TEST(ExtremesTest, ThousandsOfTensors) {
  oracle::Dice dice(5);
  TransferSpec spec;
  const Layout rows = MakeLayout({16}, Ranks(0, 16), "S(0)");
  const Layout blocks = MakeLayout({4, 4}, Ranks(0, 16), "S(1),R");
  for (int t = 0; t < oracle::Sampled(2000); ++t) {
    spec.tensors.push_back({absl::StrCat("t", t),
                            {dice.Between(0, 20), dice.Between(0, 6)},
                            DType::kBF16,
                            DType::kBF16,
                            t % 2 == 0 ? rows : blocks,
                            t % 3 == 0 ? rows : blocks});
  }
  SessionOptions options;
  options.bucket_bytes = 4096;
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
      spec.tensors.push_back({absl::StrCat("t", t),
                              {3},
                              DType::kI32,
                              DType::kI32,
                              MakeLayout({2}, {0, 1}, placement),
                              MakeLayout({1}, {2}, "R")});
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

TEST(ExtremesTest, OnlyWithinRanks) {
  TransferSpec spec = AllToAll(5, 1024);
  spec.tensors[0].dst = spec.tensors[0].src;
  RunJobOn(5, spec, OneTinySlot());
}

TEST(ExtremesTest, RanksWithNothingToDo) {
  TransferSpec spec = Ring(16, 1);
  spec.tensors[0].src = MakeLayout({2}, {14, 3}, "S(1)");
  spec.tensors[0].dst = MakeLayout({3}, {3, 9, 1}, "S(0)");
  RunJobOn(16, spec, OneTinySlot());
}

TEST(ExtremesTest, OneSourceFeedsAll) {
  TransferSpec spec = Ring(16, 1);
  spec.tensors[0].src = MakeLayout({1}, {5}, "R");
  spec.tensors[0].dst = MakeLayout({16}, Ranks(0, 16), "R");
  SessionOptions options;
  options.bucket_bytes = 1000;
  options.budget_buckets = 2;
  RunJobOn(16, spec, options);
}

TEST(ExtremesTest, EightDimensions) {
  TransferSpec spec = Ring(4, 1);
  spec.tensors[0].shape = {2, 3, 2, 1, 3, 2, 2, 3};
  spec.tensors[0].src = MakeLayout({2, 2}, Ranks(0, 4), "S(7),SS(4,2)");
  spec.tensors[0].dst = MakeLayout({2, 2}, {3, 1, 2, 0}, "SS(1,3),S(0)");
  SessionOptions options;
  options.bucket_bytes = 72;
  RunJobOn(4, spec, options);
}

TEST(ExtremesTest, TransfersThatGrowShareOneSession) {
  RunRanks(4, [](Rank& self) {
    SessionOptions options;
    options.bucket_bytes = 1 << 16;
    options.budget_buckets = kNoLimit;
    const auto session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    std::vector<Bound> bounds;
    constexpr int64_t kLargest = oracle::kSanitized ? 20000 : 200000;
    for (const int64_t block_bytes :
         {int64_t{64}, int64_t{128}, int64_t{4096}, int64_t{512}, kLargest}) {
      bounds.push_back(CompileBound(session.get(), AllToAll(4, block_bytes), 3));
      ASSERT_NE(bounds.back().transfer, nullptr);
      for (size_t i = 0; i < bounds.size(); ++i) RunOnce(session.get(), &bounds[i], i);
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
