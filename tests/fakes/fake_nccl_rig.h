// Ranks of the fake NCCL as threads, each with a device, a stream and a communicator.
#ifndef SLUICE_TESTS_FAKES_FAKE_NCCL_RIG_H_
#define SLUICE_TESTS_FAKES_FAKE_NCCL_RIG_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "gtest/gtest.h"
#include "nccl.h"

namespace sluice {

// Waits while the communicator is in progress; its state then.
inline ncclResult_t Settle(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (true) {
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    if (state != ncclInProgress) return state;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

inline ncclResult_t MakeComm(ncclComm_t* comm, int ranks, const ncclUniqueId& id, int rank,
                             int blocking = 1) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking;
  return ncclCommInitRankConfig(comm, ranks, id, rank, &config);
}

class NcclRank {
 public:
  NcclRank(const ncclUniqueId& id, int rank, int ranks) : rank_(rank), ranks_(ranks) {
    EXPECT_EQ(MakeComm(&comm_, ranks, id, rank), ncclSuccess);
  }
  ~NcclRank() {
    if (comm_ == nullptr) return;
    EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
    EXPECT_EQ(ncclCommDestroy(comm_), ncclSuccess);
  }
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  ncclComm_t comm() const { return comm_; }
  cudaStream_t stream() const { return stream_.get(); }

  ncclResult_t Send(const void* data, size_t bytes, int peer) const {
    return ncclSend(data, bytes, ncclUint8, peer, comm_, stream());
  }
  ncclResult_t Receive(void* data, size_t bytes, int peer) const {
    return ncclRecv(data, bytes, ncclUint8, peer, comm_, stream());
  }
  void Abort() {
    EXPECT_EQ(ncclCommAbort(comm_), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
    Forget();
  }
  // Somebody else has ended the communicator.
  void Forget() { comm_ = nullptr; }

 private:
  int rank_;
  int ranks_;
  ScopedStream stream_;
  ncclComm_t comm_ = nullptr;
};

// Runs `body(id, rank)` on a thread with a device for each rank.
inline void RunThreads(int ranks, const std::function<void(const ncclUniqueId&, int)>& body) {
  FakeCudaConfig config = FakeCudaConfiguration();
  config.devices = ranks;
  FakeCudaConfigure(config);
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      EXPECT_EQ(cudaSetDevice(rank), cudaSuccess);
      body(id, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline void RunRanks(int ranks, const std::function<void(NcclRank&)>& body) {
  RunThreads(ranks, [&](const ncclUniqueId& id, int rank) {
    NcclRank self(id, rank, ranks);
    body(self);
  });
}

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_FAKE_NCCL_RIG_H_
