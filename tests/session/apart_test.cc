// Whole jobs whose chunks do not join, under budgets of one bucket and of eight.
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

constexpr int kSize = 6;
constexpr int kTensors = 12;

// Tensors cut by rows at first and by columns afterwards: small chunks between all ranks.
TransferSpec SmallChunks() {
  TransferSpec spec;
  for (int t = 0; t < kTensors; ++t) {
    TensorTransfer tensor;
    tensor.name = absl::StrCat("t", t);
    tensor.shape = {kSize * 8, kSize * 4};
    tensor.src_dtype = tensor.dst_dtype = DType::kF32;
    tensor.src = MakeLayout({kSize}, Ranks(0, kSize), "S(0)");
    tensor.dst = MakeLayout({kSize}, Ranks(0, kSize), "S(1)");
    spec.tensors.push_back(tensor);
  }
  return spec;
}

TEST(ApartTest, ThereIsABucketForEachChunk) {
  for (const bool coalesce : {true, false}) {
    for (const int64_t budget : {1, 8}) {
      RunRanks(kSize, [&](Rank& self) {
        SessionOptions options;
        options.coalesce = coalesce;
        options.budget_buckets = budget;
        const std::unique_ptr<Session> session = OpenSession(self, options);
        ASSERT_NE(session, nullptr);
        Bound bound = CompileBound(session.get(), SmallChunks());
        ASSERT_NE(bound.transfer, nullptr);
        // To each rank, itself included, a chunk of each tensor.
        EXPECT_EQ(bound.transfer->stats().buckets_as_source, coalesce ? kSize : kSize * kTensors);
        for (uint64_t round = 0; round < 3; ++round) RunOnce(session.get(), &bound, round);
        ExpectWithinLimits(*session);
        EXPECT_LE(session->counters().buckets_peak, budget);
        EXPECT_TRUE(session->Close().ok());
      });
      ASSERT_FALSE(HasFailure()) << "coalesce " << coalesce << ", budget " << budget;
    }
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

}  // namespace
}  // namespace sluice::session_test
