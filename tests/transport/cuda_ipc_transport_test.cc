// The contract over CUDA IPC on the fake runtime, with ranks as threads. And what this transport
// alone does: handles, freed memory, events, parting, errors at every call.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "fakes/fake_cuda.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "oracle/sampled.h"
#include "sluice/cuda.h"
#include "transport/cuda_contract.h"
#include "transport/cuda_ipc/cuda_ipc_handles.h"
#include "transport/thread_ranks.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

constexpr absl::StatusCode kRefused = absl::StatusCode::kFailedPrecondition;
constexpr size_t kBytes = 3000;

// Ranks are threads, which share no GPU's memory otherwise.
void Configure(int devices) {
  FakeCudaConfigure({.devices = devices, .same_process_ipc = true, .delay_us = 20, .seed = 7});
}

std::shared_ptr<TransportMaker> Maker() { return *MakeCudaIpcTransport(nullptr); }

// Ranks in turn on `devices` GPUs.
RankMaker RanksOn(int devices) {
  return [devices](std::unique_ptr<Fabric> fabric) {
    const int ordinal = fabric->rank() % devices;
    return std::make_unique<ContractRank>(std::move(fabric), CudaContractMemory(ordinal, Maker()));
  };
}

std::vector<ContractWorld> Worlds() {
  std::vector<ContractWorld> worlds;
  for (const int size : {2, 3, 5}) {
    if (oracle::kSanitized && size > 3) break;
    if (size == 3 && !oracle::kSanitized && !oracle::IsThorough()) continue;
    for (const int devices : {1, 3}) {
      if (devices > size) continue;
      worlds.push_back({absl::StrCat("Ranks", size, "Gpus", devices),
                        [size, devices](const ContractScript& script) {
                          Configure(devices);
                          RunOnThreads(std::vector<int>(static_cast<size_t>(size), 0),
                                       RanksOn(devices), script);
                        }});
    }
  }
  return worlds;
}

INSTANTIATE_TEST_SUITE_P(CudaIpc, TransportContract, testing::ValuesIn(Worlds()),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(CudaIpc, PartContract, testing::ValuesIn(Worlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(CudaIpc, GroupContract, testing::ValuesIn(Worlds()), ContractWorldName);

// The outcome of Open on each rank of a node.
std::vector<absl::Status> Open(const std::vector<int>& ordinals) {
  return OpenOnGpus(std::vector<int>(ordinals.size(), 0), ordinals, Maker);
}

TEST(CudaIpcTransportTest, RefusesRanksOnOtherNodes) {
  Configure(1);
  EXPECT_THAT(OpenOnGpus({0, 0, 1}, {0, 0, 0}, Maker),
              Each(Fails(kRefused, "ranks 0 and 2 are on different ones")));
}

TEST(CudaIpcTransportTest, SaysWhereGpusDoNotReachOneAnother) {
  FakeCudaConfigure({.devices = 2, .peer_access = false, .same_process_ipc = true});
  EXPECT_THAT(Open({0, 1, 0}),
              Each(Fails(kRefused,
                         "rank 0: GPU 0000:10:00.0 cannot access the memory of rank 1, "
                         "of GPU 0000:11:00.0")));
  EXPECT_THAT(Open({0, 0}), Each(testing::Property(&absl::Status::ok, true)));
}

// As in containers without a common namespace: nothing tells but the opening.
TEST(CudaIpcTransportTest, SaysWhoCannotOpenWhoseMemory) {
  Configure(1);
  FakeCudaFailAt("cudaIpcOpenMemHandle", 1, cudaErrorMapBufferObjectFailed);
  const std::vector<absl::Status> outcomes = Open({0, 0});
  const char* const opener =
      outcomes[0].message().find("rank 0: ") == std::string::npos ? "rank 1: " : "rank 0: ";
  EXPECT_THAT(outcomes, Each(Fails(kRefused, AllOf(HasSubstr(opener), HasSubstr("memory of rank"),
                                                   HasSubstr("IPC namespace")))));
}

// Ranks that are threads of one process, as CUDA has it.
TEST(CudaIpcTransportTest, RefusesRanksOfOneProcess) {
  FakeCudaConfigure({});
  EXPECT_THAT(Open({0, 0}), Each(Fails(kRefused, "processes of their own")));
}

TEST(CudaIpcTransportTest, RefusesDevicesThatAreNotCuda) {
  Configure(1);
  EXPECT_THAT(Open({0, -1}), Each(Fails(absl::StatusCode::kInvalidArgument, "rank 1: cuda_ipc")));
}

std::vector<absl::Status> RunJob(int size, int devices) {
  return CudaJob(size, [devices](int rank) { return CudaContractMemory(rank % devices, Maker()); })
      .Run();
}

// Not those of which tests make calls, too.
TEST(CudaIpcTransportTest, FailsOnAllRanksAtEveryCall) {
  for (const char* const call :
       {"cudaDeviceGetPCIBusId", "cudaGetDriverEntryPointByVersion", "cudaDeviceGetAttribute",
        "cudaEventCreateWithFlags", "cudaIpcGetEventHandle", "cudaIpcGetMemHandle",
        "cudaEventRecord", "cudaIpcOpenEventHandle", "cudaIpcOpenMemHandle", "cudaStreamWaitEvent",
        "cudaMemcpyAsync"}) {
    int failing = 0;
    for (int nth = 1; nth < 1000; nth += oracle::kSanitized ? 1 + nth : 1 + nth / 4) {
      Configure(2);
      FakeCudaFailAt(call, nth, cudaErrorUnknown);
      const std::vector<absl::Status> outcomes = RunJob(3, 2);
      const int failures = FakeCudaFailures();
      EXPECT_EQ(Failed(outcomes), failures > 0 ? 3 : 0) << call << ", call " << nth;
      EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()) << call << ", call " << nth;
      if (failures == 0 || HasFailure()) break;
      ++failing;
    }
    EXPECT_GT(failing, 0) << call;
  }
}

TEST(CudaIpcTransportTest, NeverWaitsForTheDevice) {
  Configure(2);
  const int64_t before = FakeCudaHostWaits();
  EXPECT_EQ(Failed(RunJob(3, 2)), 0);
  // Each rank closes the memory of two others that it opens on trial, and frees what they open so.
  // It gives its one buffer back, and waits for its stream before that and at the end. At the end
  // it closes what it has open of its neighbour.
  EXPECT_EQ(FakeCudaHostWaits() - before, 3 * 7);
}

// Sends `data` of rank 0 to rank 1, which checks it.
void Ship(ContractRank& r, std::byte* data, size_t bytes, uint64_t seed) {
  std::byte* const received = r.rank() == 1 ? r.Buffer(bytes) : nullptr;
  r.Start({r.rank() == 0 ? r.Send(1, 0, data, bytes) : r.Receive(0, 0, received, bytes)});
  r.UntilAllEnded();
  if (r.rank() == 1) {
    EXPECT_TRUE(r.Matches(received, bytes, seed)) << "message " << seed;
  }
}

TEST(CudaIpcTransportTest, OpensAnAllocationOnce) {
  Configure(2);
  RunOnThreads({0, 0}, RanksOn(2), [](ContractRank& r) {
    r.Reserve(1);
    std::byte* const data = r.FilledBuffer(kBytes, 9);
    const int64_t opened = FakeCudaCalls("cudaIpcOpenMemHandle");
    for (int i = 0; i < 5; ++i) Ship(r, data, kBytes, 9);
    EXPECT_EQ(FakeCudaCalls("cudaIpcOpenMemHandle"), opened + 1);
    EXPECT_LE(FakeCudaCalls("cudaIpcOpenEventHandle"), 2);
  });
}

// What is freed and allocated anew has other bytes.
TEST(CudaIpcTransportTest, TellsMemoryFromWhatWasThereBefore) {
  FakeCudaConfigure({.same_process_ipc = true, .free_while_open = true});
  RunOnThreads({0, 0}, RanksOn(1), [](ContractRank& r) {
    r.Reserve(1);
    for (uint64_t seed = 0; seed < 100; ++seed) {
      std::byte* const data = r.rank() == 0 ? r.FilledBuffer(kBytes, seed) : nullptr;
      Ship(r, data, kBytes, seed);
      if (r.rank() == 0) r.FreeBuffer(data);
    }
  });
}

// A receiver may go before its sender has heard from it.
TEST(CudaIpcTransportTest, EventsOutliveTheirTransports) {
  Configure(1);
  std::atomic<bool> gone{false};
  RunOnThreads({0, 0}, RanksOn(1), [&gone](ContractRank& r) {
    r.Reserve(1);
    const TransportOp op = r.rank() == 0 ? r.Send(1, 0, r.FilledBuffer(kBytes, 5), kBytes)
                                         : r.Receive(0, 0, r.Buffer(kBytes), kBytes);
    r.Start({op});
    while (r.rank() == 0 && !gone) std::this_thread::yield();
    r.UntilAllEnded();
    EXPECT_TRUE(r.Outcome(op.cookie).ok()) << r.Outcome(op.cookie);
    if (r.rank() == 0) return;
    r.DestroyTransports();
    gone = true;
  });
}

TEST(CudaIpcTransportTest, SaysWhatMemoryOthersCannotOpen) {
  Configure(1);
  RunOnThreads({0, 0}, RanksOn(1), [](ContractRank& r) {
    r.Reserve(1);
    std::vector<std::byte> host(100);
    const TransportOp op =
        r.rank() == 0 ? r.Send(1, 0, host.data(), 100) : r.Receive(0, 0, r.Buffer(100), 100);
    r.Start({op});
    r.UntilAllEnded();
    EXPECT_THAT(r.Outcome(op.cookie),
                Fails(kRefused, AllOf(HasSubstr("no device memory of this process"),
                                      HasSubstr("from rank 0 to rank 1"))));
  });
}

// Rank 0 sends rank 1 `messages` messages of 64 bytes at once.
void ShipMany(ContractRank& r, size_t messages, uint64_t seed) {
  constexpr size_t kEach = 64;
  std::byte* const data =
      r.rank() == 0 ? r.FilledBuffer(messages * kEach, seed) : r.Buffer(messages * kEach);
  std::vector<TransportOp> ops;
  for (size_t at = 0; at < messages * kEach; at += kEach) {
    ops.push_back(r.rank() == 0 ? r.Send(1, 0, data + at, kEach)
                                : r.Receive(0, 0, data + at, kEach));
  }
  r.Start(ops);
  r.UntilAllEnded();
  EXPECT_TRUE(r.Matches(data, messages * kEach, seed)) << "message " << seed;
}

// A process has kCudaIpcEventsMax of them.
TEST(CudaIpcTransportTest, EventsAreMadeOnlyForOperationsThatMeet) {
  FakeCudaConfigure({.same_process_ipc = true, .events_max = 64});
  RunOnThreads({0, 0}, RanksOn(1), [](ContractRank& r) {
    r.Reserve(5000);
    for (uint64_t seed = 1; seed <= 40; ++seed) ShipMany(r, 1, seed);
  });
}

TEST(CudaIpcTransportTest, EventsAreSharedWhereManyOperationsMeet) {
  // Each of two ranks makes kCudaIpcEventsMax events, and opens all of the other one's.
  FakeCudaConfigure({.same_process_ipc = true, .events_max = 4 * kCudaIpcEventsMax});
  RunOnThreads({0, 0}, RanksOn(1), [](ContractRank& r) {
    constexpr int kOperations = 5 * kCudaIpcEventsMax / 2;
    r.Reserve(kOperations);
    for (uint64_t seed = 1; seed <= 2; ++seed) ShipMany(r, kOperations, seed);
  });
}

// The offer has come where the receive waits for it, but the receiver has not looked yet. It will
// copy, so the send must not end before the receiver has answered.
TEST(CudaIpcTransportTest, PartingAwaitsTheAnswerOfAReceiverThatHasNotLookedYet) {
  FakeCudaConfigure({.same_process_ipc = true});
  std::atomic<bool> waits{false};
  std::atomic<bool> tried{false};
  RunOnThreads({0, 0}, RanksOn(1), [&waits, &tried](ContractRank& r) {
    r.Reserve(1);
    TransportOp op;
    if (r.rank() == 0) {
      op = r.Send(1, 0, r.FilledBuffer(kBytes, 5), kBytes);
      while (!waits) std::this_thread::yield();
      r.Start({op});
      for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(r.transport().Part());
        r.Poll(1);
      }
      EXPECT_FALSE(r.Ended(op.cookie));
      tried = true;
    } else {
      op = r.Receive(0, 0, r.Buffer(kBytes), kBytes);
      r.Start({op});
      waits = true;
      while (!tried) std::this_thread::yield();
      r.UntilAllEnded();
      EXPECT_TRUE(r.Matches(op.data, kBytes, 5));
    }
    r.Until("parting", [&r] { return r.transport().Part(); });
    EXPECT_TRUE(r.Outcome(op.cookie).ok()) << r.Outcome(op.cookie);
  });
}

}  // namespace
}  // namespace sluice
