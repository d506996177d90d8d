// The fake NCCL moves bytes as NCCL does, in its order, and says what was done wrong.
#include "fakes/fake_nccl.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "fakes/fake_nccl_rig.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr size_t kBytes = 300000;  // more than fits between two ranks

class FakeNcclTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeCudaConfigure({});
    FakeNcclSetTimeout(120000);
  }
};

TEST_F(FakeNcclTest, EveryRankSendsToEveryOther) {
  for (const int ranks : {1, 2, 3, 8}) {
    RunRanks(ranks, [](NcclRank& self) {
      std::vector<std::unique_ptr<FilledMemory>> out;
      std::vector<std::unique_ptr<FilledMemory>> in;
      for (int peer = 0; peer < self.ranks(); ++peer) {
        out.push_back(std::make_unique<FilledMemory>(kBytes, 10 * self.rank() + peer));
        in.push_back(std::make_unique<FilledMemory>(kBytes, 255));
      }
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      for (size_t peer = 0; peer < out.size(); ++peer) {
        EXPECT_EQ(self.Send(out[peer]->data(), kBytes, static_cast<int>(peer)), ncclSuccess);
        EXPECT_EQ(self.Receive(in[peer]->data(), kBytes, static_cast<int>(peer)), ncclSuccess);
      }
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
      ASSERT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
      for (size_t peer = 0; peer < in.size(); ++peer) {
        EXPECT_TRUE(in[peer]->IsAll(10 * static_cast<int>(peer) + self.rank()));
      }
    });
    EXPECT_EQ(FakeNcclKernels(), ranks);
    EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty());
  }
}

TEST_F(FakeNcclTest, MessagesToOnePeerMatchInOrder) {
  RunRanks(2, [](NcclRank& self) {
    const FilledMemory first(100, 1);
    const FilledMemory second(300, 2);
    const FilledMemory third(200, 3);
    const int peer = 1 - self.rank();
    const auto move = [&](const FilledMemory& memory) {
      EXPECT_EQ(self.rank() == 0 ? self.Send(memory.data(), memory.bytes(), peer)
                                 : self.Receive(memory.data(), memory.bytes(), peer),
                ncclSuccess);
    };
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    move(first);
    move(second);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    move(third);
    // Also messages of nothing.
    EXPECT_EQ(self.rank() == 0 ? self.Send(nullptr, 0, peer) : self.Receive(nullptr, 0, peer),
              ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
  });
}

// A send is done when its receive has taken it, so the kernel after it waits too, on any stream.
TEST_F(FakeNcclTest, KernelsOfOneCommunicatorRunOneAfterAnother) {
  std::atomic<bool> was_early = false;
  RunRanks(2, [&](NcclRank& self) {
    const FilledMemory memory(10, 1);
    const ScopedStream other;
    const int peer = 1 - self.rank();
    if (self.rank() == 0) {
      EXPECT_EQ(self.Send(memory.data(), 10, peer), ncclSuccess);
      // To itself, and yet it waits for the kernel before it.
      const FilledMemory copy(10, 0);
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      EXPECT_EQ(ncclSend(memory.data(), 10, ncclUint8, 0, self.comm(), other.get()), ncclSuccess);
      EXPECT_EQ(ncclRecv(copy.data(), 10, ncclUint8, 0, self.comm(), other.get()), ncclSuccess);
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(cudaStreamQuery(other.get()), cudaErrorNotReady);
      was_early = true;
      EXPECT_EQ(cudaStreamSynchronize(other.get()), cudaSuccess);
      EXPECT_TRUE(copy.IsAll(1));
      EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
    } else {
      while (!was_early) std::this_thread::yield();
      EXPECT_EQ(self.Receive(memory.data(), 10, peer), ncclSuccess);
      EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
    }
  });
}

TEST_F(FakeNcclTest, ACommunicatorThatDoesNotBlockIsInProgressForAWhile) {
  RunThreads(2, [](const ncclUniqueId& id, int rank) {
    const ScopedStream stream;
    const FilledMemory memory(kBytes, 3 + rank);
    ncclComm_t comm = nullptr;
    EXPECT_EQ(MakeComm(&comm, 2, id, rank, /*blocking=*/0), ncclInProgress);
    EXPECT_EQ(Settle(comm), ncclSuccess);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    const auto post = [&] {
      return rank == 0 ? ncclSend(memory.data(), kBytes, ncclUint8, 1, comm, stream.get())
                       : ncclRecv(memory.data(), kBytes, ncclUint8, 0, comm, stream.get());
    };
    EXPECT_EQ(post(), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
    EXPECT_EQ(Settle(comm), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    EXPECT_TRUE(memory.IsAll(3));
    EXPECT_EQ(ncclCommFinalize(comm), ncclInProgress);
    EXPECT_EQ(Settle(comm), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

// Also before its group was launched: streams and memory may go at once.
TEST_F(FakeNcclTest, AnAbortEndsWhatIsInProgress) {
  RunThreads(2, [](const ncclUniqueId& id, int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(MakeComm(&comm, 2, id, rank, /*blocking=*/0), ncclInProgress);
    EXPECT_EQ(Settle(comm), ncclSuccess);
    const CudaMemory memory(kBytes);
    const ScopedStream stream;
    EXPECT_EQ(ncclRecv(memory.data(), kBytes, ncclUint8, 1 - rank, comm, stream.get()),
              ncclInProgress);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  });
  RunThreads(2, [](const ncclUniqueId& id, int rank) {
    if (rank == 1) return;  // never comes
    ncclComm_t comm = nullptr;
    EXPECT_EQ(MakeComm(&comm, 2, id, rank, /*blocking=*/0), ncclInProgress);
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclInProgress);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  });
}

TEST_F(FakeNcclTest, TwoRanksOnOneDeviceAreRefused) {
  RunThreads(3, [](const ncclUniqueId& id, int rank) {
    EXPECT_EQ(cudaSetDevice(rank == 2 ? 0 : rank), cudaSuccess);
    ncclComm_t comm = nullptr;
    EXPECT_EQ(MakeComm(&comm, 3, id, rank), ncclInvalidUsage);
    EXPECT_EQ(comm, nullptr);
    EXPECT_THAT(ncclGetLastError(nullptr),
                HasSubstr("Duplicate GPU detected : rank 0 and rank 2 both on CUDA device"));
  });
}

TEST_F(FakeNcclTest, OtherRanksWaitForOneThatAbortsUntilTheyAbortToo) {
  FakeNcclSetTimeout(1);  // no misuse of theirs
  std::atomic<bool> is_gone = false;
  RunRanks(3, [&](NcclRank& self) {
    const FilledMemory memory(10, 1);
    const int next = (self.rank() + 1) % 3;
    const int last = (self.rank() + 2) % 3;
    if (self.rank() == 2) {
      self.Abort();
      is_gone = true;
      return;
    }
    while (!is_gone) std::this_thread::yield();
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(self.Send(memory.data(), 10, next), ncclSuccess);
    EXPECT_EQ(self.Receive(memory.data(), 10, last), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(cudaStreamQuery(self.stream()), cudaErrorNotReady);
    self.Abort();
  });
}

// Not for one that it has exchanged nothing with.
TEST_F(FakeNcclTest, DestroyWaitsForTheRanksItHasMet) {
  std::atomic<bool> has_left = false;
  RunThreads(3, [&](const ncclUniqueId& id, int rank) {
    const ScopedStream stream;
    const FilledMemory memory(10, 1);
    ncclComm_t comm = nullptr;
    ASSERT_EQ(MakeComm(&comm, 3, id, rank), ncclSuccess);
    if (rank == 0) {
      EXPECT_EQ(ncclSend(memory.data(), 10, ncclUint8, 1, comm, stream.get()), ncclSuccess);
    } else if (rank == 1) {
      EXPECT_EQ(ncclRecv(memory.data(), 10, ncclUint8, 0, comm, stream.get()), ncclSuccess);
    }
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    // None of these waits for another rank.
    EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_FALSE(has_left);
    }
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    if (rank == 0) has_left = true;
  });
}

// But what was under way has ended.
TEST_F(FakeNcclTest, AnAbortDoesNotComeBackWhileItIsHeld) {
  FakeNcclHoldAborts(true);
  std::atomic<bool> is_back = false;
  std::atomic<bool> is_released = false;
  RunRanks(2, [&](NcclRank& self) {
    if (self.rank() == 1) {
      while (!is_released) std::this_thread::yield();
      return self.Abort();
    }
    const FilledMemory memory(10, 1);
    EXPECT_EQ(self.Receive(memory.data(), 10, 1), ncclSuccess);
    std::thread aborting([&] {
      EXPECT_EQ(ncclCommAbort(self.comm()), ncclSuccess);
      is_back = true;
    });
    EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
    EXPECT_FALSE(is_back);
    FakeNcclHoldAborts(false);
    is_released = true;
    aborting.join();
    self.Forget();
  });
}

TEST_F(FakeNcclTest, AKernelFailsHalfWayAndWaitsForTheAbort) {
  FakeNcclFailKernel(1, 2, ncclRemoteError);
  RunRanks(2, [](NcclRank& self) {
    const FilledMemory memory(kBytes, 1 + self.rank());
    const int peer = 1 - self.rank();
    const auto exchange = [&] {
      return self.rank() == 0 ? self.Send(memory.data(), kBytes, peer)
                              : self.Receive(memory.data(), kBytes, peer);
    };
    EXPECT_EQ(exchange(), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
    EXPECT_EQ(exchange(), ncclSuccess);
    if (self.rank() == 1) {
      ncclResult_t state = ncclSuccess;
      while (state == ncclSuccess) {
        EXPECT_EQ(ncclCommGetAsyncError(self.comm(), &state), ncclSuccess);
        std::this_thread::yield();
      }
      EXPECT_EQ(state, ncclRemoteError);
      EXPECT_EQ(exchange(), ncclRemoteError);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(cudaStreamQuery(self.stream()), cudaErrorNotReady);
    self.Abort();
  });
  EXPECT_EQ(FakeNcclFailures(), 1);
}

TEST_F(FakeNcclTest, CallsAreCountedAndFailWhenTheyAreTo) {
  RunRanks(1, [](NcclRank& self) {
    const FilledMemory memory(10, 1);
    FakeNcclFailAt("ncclSend", 2, ncclSystemError);
    const auto group = [&] {
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      self.Send(memory.data(), 5, 0);
      self.Receive(memory.At(5), 5, 0);
      return ncclGroupEnd();
    };
    EXPECT_EQ(group(), ncclSuccess);
    EXPECT_EQ(group(), ncclSystemError);
    EXPECT_THAT(ncclGetLastError(self.comm()), HasSubstr("ncclSend was made to fail"));
    EXPECT_EQ(group(), ncclSuccess);
    EXPECT_EQ(FakeNcclCalls("ncclSend"), 3);
    FakeNcclFailAt("ncclGroupEnd", 1, ncclInternalError);
    EXPECT_EQ(group(), ncclInternalError);
    EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
    FakeNcclFailAt(2, ncclSystemError);
    int version = 0;
    EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
    EXPECT_EQ(version, 22809);
    EXPECT_EQ(ncclGetVersion(&version), ncclSystemError);
  });
}

TEST_F(FakeNcclTest, TheConfigurationIsCheckedAndKept) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.nChannelsPerNetPeer = 0;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
  config.nChannelsPerNetPeer = 2;
  config.maxCTAs = 4;
  ASSERT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclSuccess);
  EXPECT_EQ(FakeNcclLastConfig().nChannelsPerNetPeer, 2);
  EXPECT_EQ(FakeNcclLastConfig().maxCTAs, 4);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

// As since NCCL 2.24: what came from cudaMalloc is taken, and not registered. So both sides may
// differ in it.
TEST_F(FakeNcclTest, OnlyMemoryOfItsOwnIsRegistered) {
  RunRanks(2, [](NcclRank& self) {
    const FilledMemory memory(100, 1 + self.rank());
    void* handle = nullptr;
    if (self.rank() == 0) {
      EXPECT_EQ(ncclCommRegister(self.comm(), memory.data(), 100, &handle), ncclSuccess);
    }
    EXPECT_EQ(
        self.rank() == 0 ? self.Send(memory.data(), 100, 1) : self.Receive(memory.data(), 100, 0),
        ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
    EXPECT_TRUE(memory.IsAll(1));
    if (self.rank() == 0) {
      EXPECT_EQ(ncclCommDeregister(self.comm(), handle), ncclSuccess);
    }
  });
  EXPECT_EQ(FakeNcclRegisteredBytes(), 0);
  RunRanks(1, [](NcclRank& self) {
    void* memory = nullptr;
    ASSERT_EQ(ncclMemAlloc(&memory, 100), ncclSuccess);
    void* handle = nullptr;
    EXPECT_EQ(ncclCommRegister(self.comm(), memory, 60, &handle), ncclSuccess);
    EXPECT_EQ(FakeNcclRegisteredBytes(), 60);
    EXPECT_EQ(ncclCommDeregister(self.comm(), handle), ncclSuccess);
    EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
  });
}

// Whatever call fails: nobody hangs, and all is given back.
TEST_F(FakeNcclTest, AFailureOfAnyCallIsSeenByTheCaller) {
  const auto run = [](NcclRank& self) {
    const FilledMemory memory(20, 1);
    int failed = 0;
    const auto note = [&](ncclResult_t result) { failed += result != ncclSuccess ? 1 : 0; };
    void* handle = nullptr;
    note(ncclCommRegister(self.comm(), memory.data(), 20, &handle));
    if (const ncclResult_t started = ncclGroupStart(); started == ncclSuccess) {
      note(self.Send(memory.data(), 10, 0));
      note(self.Receive(memory.At(10), 10, 0));
      note(ncclGroupEnd());
    } else {
      note(started);
    }
    if (handle != nullptr) note(ncclCommDeregister(self.comm(), handle));
    EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
    return failed;
  };
  int nth = 1;
  for (bool has_failed = true; has_failed; ++nth) {
    RunRanks(1, [&](NcclRank& self) {
      FakeNcclFailAt(nth, ncclSystemError);
      const int failed = run(self);
      has_failed = FakeNcclFailures() > 0;
      EXPECT_EQ(failed > 0, has_failed) << nth;
      FakeNcclFailNoMore();
    });
    EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()) << nth;
  }
  EXPECT_EQ(nth, 8);  // six calls, and one round without a failure
}

// Streams that lag behind at random change nothing.
TEST_F(FakeNcclTest, ManyRanksWithDelays) {
  FakeCudaConfigure({.delay_us = 300, .seed = 7});
  RunRanks(16, [](NcclRank& self) {
    const FilledMemory memory(kBytes, 1);
    const ScopedStream other;
    const CudaEvent event;
    const int next = (self.rank() + 1) % self.ranks();
    const int last = (self.rank() + self.ranks() - 1) % self.ranks();
    for (int round = 2; round < 5; ++round) {
      // Filled on a stream, sent on another.
      EXPECT_EQ(cudaMemsetAsync(memory.data(), round, kBytes / 2, other.get()), cudaSuccess);
      EXPECT_EQ(cudaEventRecord(event.get(), other.get()), cudaSuccess);
      EXPECT_EQ(cudaStreamWaitEvent(self.stream(), event.get()), cudaSuccess);
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      EXPECT_EQ(self.Send(memory.data(), kBytes / 2, next), ncclSuccess);
      EXPECT_EQ(self.Receive(memory.At(kBytes / 2), kBytes / 2, last), ncclSuccess);
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
      EXPECT_EQ(cudaEventRecord(event.get(), self.stream()), cudaSuccess);
      EXPECT_EQ(cudaStreamWaitEvent(other.get(), event.get()), cudaSuccess);
    }
    EXPECT_EQ(cudaStreamSynchronize(other.get()), cudaSuccess);
    EXPECT_TRUE(memory.IsAll(4));
  });
}

}  // namespace
}  // namespace sluice
