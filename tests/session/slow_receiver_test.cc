// A receiver that asks for nothing holds nothing, over loopback. Over a loopback whose sends end at
// once the test sees that it holds something. So the test can be trusted over MPI (mpi_tests/).
#include "session/slow_receiver.h"

#include <atomic>
#include <cstdint>

#include "gtest/gtest.h"
#include "transport/loopback/loopback.h"

namespace sluice::session_test {
namespace {

using Growth = int64_t (*)(Rank& self, const SlowReceiver& receiver);

// Ranks are threads, so that the process grows by what all of them do.
int64_t GrowthOver(LoopbackSends sends, Growth growth, const SlowReceiver& receiver) {
  std::atomic<int64_t> bytes = 0;
  RunRanksOn(MakeLoopbackFabrics({0, 1}, sends), [&](Rank& self) {
    const int64_t own = growth(self, receiver);
    if (self.rank == 1) bytes = own;
  });
  return bytes;
}

TEST(SlowReceiverTest, HoldsItsBudget) {
  for (const int64_t bucket_bytes : {4 << 10, 32 << 10}) {
    const SlowReceiver receiver = {bucket_bytes, 4 * bucket_bytes, 24 << 20};
    const int64_t allowed = 2 * receiver.budget_bytes + kOtherGrowthBytes;
    EXPECT_LE(GrowthOver(LoopbackSends::kMeetTheirReceives, &GrowthBeforeMemoryComes, receiver),
              allowed);
    EXPECT_LE(GrowthOver(LoopbackSends::kMeetTheirReceives, &GrowthWhileAnItemIsHeld, receiver),
              allowed);
  }
}

TEST(SlowReceiverTest, IsSeenToHoldMoreWhereSendsEndAtOnce) {
  SlowReceiver receiver = {32 << 10, 128 << 10, 24 << 20};
  const int64_t allowed = 2 * receiver.budget_bytes + kOtherGrowthBytes;
  receiver.awaited_bytes = allowed + 1;
  EXPECT_GT(GrowthOver(LoopbackSends::kEager, &GrowthBeforeMemoryComes, receiver), allowed);
  EXPECT_GT(GrowthOver(LoopbackSends::kEager, &GrowthWhileAnItemIsHeld, receiver), allowed);
}

}  // namespace
}  // namespace sluice::session_test
