// A receiver that asks for nothing holds its budget and what MPI has for itself: nothing piles up
// in it, whatever lengths MPI sends without asking.
#include "gtest/gtest.h"
#include "session/slow_receiver.h"
#include "session_mpi_rank.h"

namespace sluice::session_test {
namespace {

constexpr int64_t kTotalBytes = 24 << 20;

int64_t AllowedBytes(const SlowReceiver& receiver) {
  return receiver.budget_bytes + kOtherGrowthBytes;
}

TEST(SlowReceiverMpiTest, HoldsItsBudgetBeforeItsMemoryComes) {
  for (const int64_t bucket_bytes : {32 << 10, 4 << 10, 256 << 10}) {
    const SlowReceiver receiver = {bucket_bytes, 2 * bucket_bytes, kTotalBytes};
    Rank self = MpiRank(MPI_COMM_WORLD);
    EXPECT_LE(GrowthBeforeMemoryComes(self, receiver), AllowedBytes(receiver)) << bucket_bytes;
  }
}

TEST(SlowReceiverMpiTest, HoldsItsBudgetWhileItsConsumerStops) {
  for (const int64_t item_bytes : {32 << 10, 4 << 10, 256 << 10}) {
    const SlowReceiver receiver = {item_bytes, 4 * item_bytes, kTotalBytes};
    Rank self = MpiRank(MPI_COMM_WORLD);
    EXPECT_LE(GrowthWhileAnItemIsHeld(self, receiver), AllowedBytes(receiver)) << item_bytes;
  }
}

// MPI sends the first bytes of a message along with its header. A budget of many small items is as
// many headers, none of which the receiver has asked for.
TEST(SlowReceiverMpiTest, HoldsABudgetOfManyItemsWhileItsConsumerStops) {
  for (const int64_t item_bytes : {32 << 10, 4 << 10}) {
    const SlowReceiver receiver = {item_bytes, 16 << 20, 40 << 20};
    Rank self = MpiRank(MPI_COMM_WORLD);
    EXPECT_LE(GrowthWhileAnItemIsHeld(self, receiver), AllowedBytes(receiver)) << item_bytes;
  }
}

}  // namespace
}  // namespace sluice::session_test
