// A rank that parts over CUDA IPC keeps what another one may be copying out of its memory.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "fakes/fake_cuda.h"
#include "gtest/gtest.h"
#include "sluice/cuda.h"
#include "transport/contract_rank.h"
#include "transport/cuda_contract.h"
#include "transport/thread_ranks.h"

namespace sluice {

namespace {

constexpr size_t kBytes = 3000;
constexpr int kTries = 100;

std::unique_ptr<ContractRank> MakeRank(std::unique_ptr<Fabric> fabric) {
  return std::make_unique<ContractRank>(std::move(fabric),
                                        CudaContractMemory(0, *MakeCudaIpcTransport(nullptr)));
}

void UntilParted(ContractRank& r) {
  r.Until("parting", [&r] {
    r.Poll(1);
    return r.transport().Part();
  });
}

// The offer has come where the receive waits for it, but the receiver has not looked yet. It will
// copy, so the send must not end before the receiver has answered.
TEST(CudaIpcPartingTest, AwaitsTheAnswerOfAReceiverThatHasNotLookedYet) {
  FakeCudaConfigure({.same_process_ipc = true});
  std::atomic<bool> waits{false};
  std::atomic<bool> tried{false};
  RunOnThreads({0, 0}, MakeRank, [&waits, &tried](ContractRank& r) {
    auto cookie = std::make_shared<uint64_t>(0);
    r.Do([&r] { ASSERT_TRUE(r.transport().Reserve(1).ok()); });
    if (r.rank() == 0) {
      r.Do([&r, &waits, &tried, cookie] {
        const TransportOp send = r.Send(1, 0, r.FilledBuffer(kBytes, 5), kBytes);
        *cookie = send.cookie;
        while (!waits) std::this_thread::yield();
        r.Start({send});
        for (int i = 0; i < kTries; ++i) {
          EXPECT_FALSE(r.transport().Part());
          r.Poll(1);
        }
        EXPECT_FALSE(r.Ended(*cookie));
        tried = true;
      });
    } else {
      auto received = std::make_shared<std::byte*>(nullptr);
      r.Do([&r, &waits, &tried, cookie, received] {
        *received = r.Buffer(kBytes);
        const TransportOp receive = r.Receive(0, 0, *received, kBytes);
        *cookie = receive.cookie;
        r.Start({receive});
        waits = true;
        while (!tried) std::this_thread::yield();
      });
      r.UntilAllEnded();
      r.Do([&r, received] { EXPECT_TRUE(r.Matches(*received, kBytes, 5)); });
    }
    UntilParted(r);
    r.Do([&r, cookie] { EXPECT_TRUE(r.Outcome(*cookie).ok()) << r.Outcome(*cookie); });
  });
  for (const std::string& left : FakeCudaCheckClean()) ADD_FAILURE() << left;
}

}  // namespace
}  // namespace sluice
