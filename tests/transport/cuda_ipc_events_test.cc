// CUDA IPC and the events of a process, of which there are kCudaIpcEventsMax.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fakes/fake_cuda.h"
#include "gtest/gtest.h"
#include "sluice/cuda.h"
#include "transport/contract_rank.h"
#include "transport/cuda_contract.h"
#include "transport/cuda_ipc/cuda_ipc_handles.h"
#include "transport/thread_ranks.h"

namespace sluice {

namespace {

constexpr size_t kBytes = 64;

void RunTwoRanks(size_t events_max, const ContractScript& script) {
  FakeCudaConfigure({.same_process_ipc = true, .events_max = events_max});
  RunOnThreads(
      {0, 0},
      [](std::unique_ptr<Fabric> fabric) {
        return std::make_unique<ContractRank>(
            std::move(fabric), CudaContractMemory(0, *MakeCudaIpcTransport(nullptr)));
      },
      script);
}

// Rank 0 sends rank 1 `messages` messages at once.
void Ship(ContractRank& r, size_t messages, uint64_t seed) {
  auto received = std::make_shared<std::byte*>(nullptr);
  r.Do([&r, received, messages, seed] {
    std::vector<TransportOp> ops;
    if (r.rank() == 0) {
      std::byte* const data = r.FilledBuffer(messages * kBytes, seed);
      for (size_t i = 0; i < messages; ++i) ops.push_back(r.Send(1, 0, data + i * kBytes, kBytes));
    } else {
      *received = r.Buffer(messages * kBytes);
      for (size_t i = 0; i < messages; ++i) {
        ops.push_back(r.Receive(0, 0, *received + i * kBytes, kBytes));
      }
    }
    r.Start(ops);
  });
  r.UntilAllEnded();
  r.Do([&r, received, messages, seed] {
    if (r.rank() != 1) return;
    EXPECT_TRUE(r.Matches(*received, messages * kBytes, seed)) << "message " << seed;
  });
}

TEST(CudaIpcEventsTest, AreMadeOnlyForOperationsThatMeet) {
  RunTwoRanks(/*events_max=*/64, [](ContractRank& r) {
    r.Do([&r] { ASSERT_TRUE(r.transport().Reserve(5000).ok()); });
    for (uint64_t seed = 1; seed <= 40; ++seed) Ship(r, 1, seed);
  });
}

TEST(CudaIpcEventsTest, AreSharedWhereManyOperationsMeet) {
  // Each of two ranks makes kCudaIpcEventsMax events, and opens all of the other one's.
  RunTwoRanks(4 * kCudaIpcEventsMax, [](ContractRank& r) {
    constexpr int kOperations = 5 * kCudaIpcEventsMax / 2;
    r.Do([&r] { ASSERT_TRUE(r.transport().Reserve(kOperations).ok()); });
    for (uint64_t seed = 1; seed <= 2; ++seed) Ship(r, kOperations, seed);
  });
}

}  // namespace
}  // namespace sluice
