// Everything that is done wrong with the fake NCCL is reported, in words.
#include <atomic>
#include <thread>
#include <vector>

#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "fakes/fake_nccl.h"
#include "fakes/fake_nccl_rig.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class FakeNcclMisuseTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeCudaConfigure({});
    FakeNcclSetTimeout(120000);
  }
};

TEST_F(FakeNcclMisuseTest, SizesThatDiffer) {
  RunRanks(2, [](NcclRank& self) {
    const FilledMemory memory(100, 1);
    EXPECT_EQ(
        self.rank() == 0 ? self.Send(memory.data(), 100, 1) : self.Receive(memory.data(), 60, 0),
        ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(self.comm(), &state), ncclSuccess);
    EXPECT_EQ(state, ncclInvalidUsage);
    self.Abort();
  });
  EXPECT_THAT(FakeCudaMisuse(),
              ElementsAre(AllOf(HasSubstr("message 0 from rank 0 to rank 1"),
                                HasSubstr("(100 bytes)"), HasSubstr("(60 bytes)"))));
}

TEST_F(FakeNcclMisuseTest, AKernelThatNobodyMatches) {
  FakeNcclSetTimeout(100);
  RunRanks(2, [](NcclRank& self) {
    const FilledMemory memory(10, 1);
    if (self.rank() == 0) {
      EXPECT_EQ(self.Receive(memory.data(), 10, 1), ncclSuccess);
      EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
      ncclResult_t state = ncclSuccess;
      EXPECT_EQ(ncclCommGetAsyncError(self.comm(), &state), ncclSuccess);
      EXPECT_EQ(state, ncclInternalError);
      EXPECT_THAT(
          FakeCudaMisuse(),
          ElementsAre(AllOf(HasSubstr("a kernel that nobody matches"),
                            HasSubstr("rank 0, in its kernel 1, waits to receive message 0 (10 "
                                      "bytes) from rank 1"),
                            HasSubstr("rank 1"))));
      self.Abort();
    }
  });
}

TEST_F(FakeNcclMisuseTest, OrderThatDiffersBetweenRanks) {
  std::atomic<bool> both_wait = false;
  RunRanks(2, [&](NcclRank& self) {
    const FilledMemory memory(20, 1);
    const int peer = 1 - self.rank();
    // Each in a kernel of its own, and both send first.
    EXPECT_EQ(self.Send(memory.data(), 10, peer), ncclSuccess);
    EXPECT_EQ(self.Receive(memory.At(10), 10, peer), ncclSuccess);
    // Both have said so, as one of them has seen.
    while (!both_wait && FakeNcclWaitingKernels() < 2) std::this_thread::yield();
    both_wait = true;
    FakeNcclSetTimeout(1);
    EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
    self.Abort();
  });
  EXPECT_THAT(FakeCudaMisuse(),
              Contains(AllOf(HasSubstr("rank 0, in its kernel 1, waits to send message 0"),
                             HasSubstr("rank 1, in its kernel 1, waits to send message 0"))));
}

TEST_F(FakeNcclMisuseTest, GroupsThatDoNotMatchThemselves) {
  RunRanks(1, [](NcclRank& self) {
    const FilledMemory memory(10, 1);
    EXPECT_EQ(self.Send(memory.data(), 10, 0), ncclInvalidUsage);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("an unmatched group")));
    self.Abort();
  });
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("not in a group")));
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_THAT(FakeCudaCheckClean(), ElementsAre(HasSubstr("a group never ended")));
}

TEST_F(FakeNcclMisuseTest, PointersStreamsAndCommunicators) {
  FakeCudaConfigure({.devices = 2});
  RunRanks(1, [](NcclRank& self) {
    const FilledMemory memory(10, 1);
    std::vector<char> host(10);
    EXPECT_EQ(self.Send(host.data(), 10, 0), ncclInvalidArgument);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("neither device memory nor pinned")));
    EXPECT_EQ(self.Receive(memory.data(), 11, 0), ncclInvalidArgument);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("beyond the 10 bytes")));
    EXPECT_EQ(self.Send(memory.data(), 10, 1), ncclInvalidArgument);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("invalid type or peer 1")));
    const ncclComm_t comm = self.comm();
    self.Abort();
    EXPECT_EQ(ncclSend(memory.data(), 10, ncclUint8, 0, comm, self.stream()), ncclInvalidArgument);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("after it was destroyed")));
  });
}

TEST_F(FakeNcclMisuseTest, AStreamOfAnotherDevice) {
  RunThreads(2, [](const ncclUniqueId& id, int rank) {
    if (rank == 1) return;
    ncclComm_t comm = nullptr;
    ASSERT_EQ(MakeComm(&comm, 1, id, 0), ncclSuccess);
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    const ScopedStream stream;
    const CudaMemory memory(10);
    EXPECT_EQ(ncclSend(memory.data(), 10, ncclUint8, 0, comm, stream.get()), ncclInvalidUsage);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("a stream of another device")));
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST_F(FakeNcclMisuseTest, CallsBeforeTheLastOneHasEnded) {
  std::atomic<bool> called = false;  // nothing ends before the other rank has come
  RunThreads(2, [&called](const ncclUniqueId& id, int rank) {
    const FilledMemory memory(10, 1);
    const ScopedStream stream;
    ncclComm_t comm = nullptr;
    while (rank == 1 && !called) std::this_thread::yield();
    EXPECT_EQ(MakeComm(&comm, 2, id, rank, /*blocking=*/0), ncclInProgress);
    if (rank == 0) {
      EXPECT_EQ(ncclSend(memory.data(), 10, ncclUint8, 1, comm, stream.get()), ncclInvalidArgument);
      EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("before the previous operation")));
      called = true;
    }
    EXPECT_EQ(Settle(comm), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST_F(FakeNcclMisuseTest, BuffersRegisteredOnOneSideOnly) {
  RunRanks(2, [](NcclRank& self) {
    void* memory = nullptr;
    ASSERT_EQ(ncclMemAlloc(&memory, 100), ncclSuccess);
    void* handle = nullptr;
    const auto move = [&] {
      auto* const at_50 = static_cast<std::byte*>(memory) + 50;
      EXPECT_EQ(self.rank() == 0 ? self.Send(memory, 50, 1) : self.Receive(at_50, 50, 0),
                ncclSuccess);
      EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
    };
    if (self.rank() == 0) {
      EXPECT_EQ(ncclCommRegister(self.comm(), memory, 100, &handle), ncclSuccess);
    }
    move();
    if (self.rank() == 1) {
      EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("only one of both sides")));
      EXPECT_EQ(ncclCommRegister(self.comm(), memory, 100, &handle), ncclSuccess);
    }
    move();
    EXPECT_EQ(ncclCommDeregister(self.comm(), handle), ncclSuccess);
    EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
  });
}

TEST_F(FakeNcclMisuseTest, MemoryThatIsStillRegisteredOrNotNccls) {
  RunRanks(1, [](NcclRank& self) {
    void* memory = nullptr;
    ASSERT_EQ(ncclMemAlloc(&memory, 100), ncclSuccess);
    void* handle = nullptr;
    ASSERT_EQ(ncclCommRegister(self.comm(), memory, 100, &handle), ncclSuccess);
    EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("that is registered, by rank 0")));
    EXPECT_EQ(ncclCommDeregister(self.comm(), handle), ncclSuccess);
    ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
    EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("ncclMemAlloc did not give out")));
  });
}

// 16 parts of each operation between two ranks, of which a send and a receive share one.
TEST_F(FakeNcclMisuseTest, AGroupBeyondOneKernel) {
  RunRanks(2, [](NcclRank& self) {
    const FilledMemory memory(20, 1);
    const int peer = 1 - self.rank();
    const auto group = [&](int pairs) {
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      for (int i = 0; i < pairs; ++i) {
        EXPECT_EQ(self.Send(memory.data(), 10, peer), ncclSuccess);
        EXPECT_EQ(self.Receive(memory.At(10), 10, peer), ncclSuccess);
      }
      return ncclGroupEnd();
    };
    EXPECT_EQ(group(15), ncclSuccess);
    EXPECT_EQ(group(16), ncclInvalidUsage);
    EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
  });
  EXPECT_THAT(FakeCudaMisuse(), Contains(HasSubstr("a group of 32 operations in 256 parts")));
}

TEST_F(FakeNcclMisuseTest, WhatIsNeverGivenBack) {
  RunThreads(1, [](const ncclUniqueId& id, int) {
    const CudaMemory memory(10);
    ncclComm_t comm = nullptr;
    EXPECT_EQ(MakeComm(&comm, 1, id, 0), ncclSuccess);
    void* handle = nullptr;
    EXPECT_EQ(ncclCommRegister(comm, memory.data(), 10, &handle), ncclSuccess);
    EXPECT_EQ(ncclCommDeregister(comm, &handle), ncclInvalidUsage);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("what is not registered")));
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("1 buffer(s) never deregistered")));
    ncclUniqueId other;
    EXPECT_EQ(ncclGetUniqueId(&other), ncclSuccess);
    EXPECT_EQ(MakeComm(&comm, 1, other, 0), ncclSuccess);
  });
  EXPECT_THAT(FakeCudaCheckClean(), ElementsAre(HasSubstr("a communicator never destroyed")));
}

}  // namespace
}  // namespace sluice
