// Whole jobs whose plans do not relay, beside those that do.
#include <cstdint>
#include <mutex>
#include <vector>

#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

constexpr int kSize = 8;  // on nodes of two

// 1 MiB that ranks 0 and 1 hold whole, and all ranks of the other nodes need whole.
TransferSpec Broadcast() {
  TensorTransfer tensor;
  tensor.name = "weight";
  tensor.shape = {512, 512};
  tensor.src_dtype = tensor.dst_dtype = DType::kF32;
  tensor.src = MakeLayout({2}, Ranks(0, 2), "R");
  tensor.dst = MakeLayout({6}, Ranks(2, kSize), "R");
  return {{tensor}};
}

// Runs `spec` a few times, verified; what each rank sends.
std::vector<int64_t> SentBytes(const TransferSpec& spec, bool relay) {
  std::vector<int64_t> sent(kSize);
  std::mutex mutex;
  RunRanks(kSize, [&](Rank& self) {
    const SessionOptions options = {.bucket_bytes = 64 << 10};
    self.naive = !relay;
    const std::unique_ptr<Session> session = OpenSession(self, options);
    Bound bound = CompileBound(session.get(), spec);
    for (uint64_t round = 0; round < 3; ++round) RunOnce(session.get(), &bound, round);
    EXPECT_TRUE(session->Close().ok());
    const std::scoped_lock lock(mutex);
    sent[static_cast<size_t>(self.rank)] = bound.transfer->stats().sent_bytes;
  });
  return sent;
}

TEST(NaivePlanTest, OnlyHoldersSend) {
  constexpr int64_t kMiB = 1 << 20;
  const std::vector<int64_t> naive = {3 * kMiB, 3 * kMiB, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(SentBytes(Broadcast(), false), naive);
  const std::vector<int64_t> relayed = SentBytes(Broadcast(), true);
  EXPECT_LT(relayed[0] + relayed[1], 4 * kMiB);
  int64_t all = 0;
  for (const int64_t bytes : relayed) all += bytes;
  EXPECT_EQ(all, 6 * kMiB);
}

TEST(NaivePlanTest, EveryByteOfRandomTransfersIsRight) {
  for (const uint64_t seed : oracle::Seeds(60)) {
    const RandomJob job = MakeRandomJob(seed, kSize);
    RunRanks(kSize, [&](Rank& self) {
      self.naive = true;
      RunJob(self, job, seed);
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::session_test
