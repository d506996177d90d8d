// The contract over CUDA IPC on the fake runtime, with ranks as threads and with one thread for all
// ranks. And what this transport alone does: handles, freed memory, errors at every call.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/device.h"
#include "fakes/fake_cuda.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "sluice/cuda.h"
#include "transport/cuda_contract.h"
#include "transport/cuda_job.h"
#include "transport/thread_ranks.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

using testing::Each;

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

MATCHER_P2(IsError, code, text, "") {
  return arg.code() == code && std::string(arg.message()).find(text) != std::string::npos;
}

std::vector<int> OneNode(int size) { return std::vector<int>(static_cast<size_t>(size), 0); }

// What each rank got from Open; ranks in turn on `devices` GPUs.
std::vector<absl::Status> Open(const std::vector<int>& nodes, int devices) {
  std::vector<absl::Status> outcomes(nodes.size());
  OnThreads(nodes, [&](std::unique_ptr<Fabric> fabric) {
    const std::unique_ptr<Device> device = MakeStreamOnlyDevice(fabric->rank() % devices);
    outcomes[static_cast<size_t>(fabric->rank())] =
        Maker()->Open(fabric.get(), device.get()).status();
  });
  return outcomes;
}

TEST(CudaIpcTransportTest, RefusesRanksOnOtherNodes) {
  Configure(1);
  EXPECT_THAT(Open({0, 0, 1}, 1), Each(IsError(absl::StatusCode::kFailedPrecondition,
                                               "ranks 0 and 2 are on different ones")));
}

TEST(CudaIpcTransportTest, SaysWhereGpusDoNotReachOneAnother) {
  FakeCudaConfigure({.devices = 2, .peer_access = false, .same_process_ipc = true});
  EXPECT_THAT(Open({0, 0, 0}, 2),
              Each(IsError(absl::StatusCode::kFailedPrecondition,
                           "rank 0: GPU 0000:10:00.0 cannot access the memory of rank 1, of GPU "
                           "0000:11:00.0")));
  EXPECT_THAT(Open({0, 0}, 1), Each(testing::Property(&absl::Status::ok, true)));
}

// As in containers without a common namespace: nothing tells but the opening.
TEST(CudaIpcTransportTest, SaysWhoCannotOpenWhoseMemory) {
  Configure(1);
  FakeCudaFailAt("cudaIpcOpenMemHandle", 1, cudaErrorMapBufferObjectFailed);
  const std::vector<absl::Status> outcomes = Open({0, 0}, 1);
  const char* const opener =
      outcomes[0].message().find("rank 0: ") == std::string::npos ? "rank 1: " : "rank 0: ";
  EXPECT_THAT(outcomes, Each(IsError(absl::StatusCode::kFailedPrecondition, opener)));
  EXPECT_THAT(outcomes, Each(IsError(absl::StatusCode::kFailedPrecondition, "memory of rank")));
  EXPECT_THAT(outcomes, Each(IsError(absl::StatusCode::kFailedPrecondition, "IPC namespace")));
}

// Ranks that are threads of one process, as CUDA has it.
TEST(CudaIpcTransportTest, RefusesRanksOfOneProcess) {
  FakeCudaConfigure({});
  EXPECT_THAT(Open({0, 0}, 1),
              Each(IsError(absl::StatusCode::kFailedPrecondition, "processes of their own")));
}

TEST(CudaIpcTransportTest, RefusesDevicesThatAreNotCuda) {
  Configure(1);
  std::vector<absl::Status> outcomes(2);
  OnThreads(OneNode(2), [&](std::unique_ptr<Fabric> fabric) {
    const std::unique_ptr<Device> device =
        fabric->rank() == 1 ? MakeHostDevice() : MakeStreamOnlyDevice(0);
    outcomes[static_cast<size_t>(fabric->rank())] =
        Maker()->Open(fabric.get(), device.get()).status();
  });
  EXPECT_THAT(outcomes, Each(IsError(absl::StatusCode::kInvalidArgument, "rank 1: cuda_ipc")));
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

// Sends `data` of rank 0 to rank 1, which returns it; others do nothing.
void Ship(ContractRank& r, const std::function<std::byte*()>& data, size_t bytes, uint64_t seed) {
  auto received = std::make_shared<std::byte*>(nullptr);
  r.Do([&r, data, bytes, received] {
    if (r.rank() == 0) {
      r.Start({r.Send(1, 0, data(), bytes)});
    } else {
      *received = r.Buffer(bytes);
      r.Start({r.Receive(0, 0, *received, bytes)});
    }
  });
  r.UntilAllEnded();
  r.Do([&r, received, bytes, seed] {
    if (r.rank() != 1) return;
    EXPECT_TRUE(r.Matches(*received, bytes, seed)) << "message " << seed;
  });
}

TEST(CudaIpcTransportTest, OpensAnAllocationOnce) {
  Configure(2);
  RunOnThreads(OneNode(2), RanksOn(2), [](ContractRank& r) {
    constexpr size_t kBytes = 1000;
    r.Do([&r] { ASSERT_TRUE(r.transport().Reserve(1).ok()); });
    auto data = std::make_shared<std::byte*>(nullptr);
    auto opened = std::make_shared<int64_t>(0);  // before
    r.Do([&r, data, opened] {
      *data = r.FilledBuffer(kBytes, 9);
      *opened = FakeCudaCalls("cudaIpcOpenMemHandle");
    });
    for (int i = 0; i < 5; ++i)
      Ship(
          r, [data] { return *data; }, kBytes, 9);
    r.Do([opened] {
      EXPECT_EQ(FakeCudaCalls("cudaIpcOpenMemHandle"), *opened + 1);
      EXPECT_LE(FakeCudaCalls("cudaIpcOpenEventHandle"), 2);
    });
  });
}

// What is freed and allocated anew has other bytes.
TEST(CudaIpcTransportTest, TellsMemoryFromWhatWasThereBefore) {
  FakeCudaConfigure({.same_process_ipc = true, .free_while_open = true});
  RunOnThreads(OneNode(2), RanksOn(1), [](ContractRank& r) {
    constexpr size_t kBytes = 3000;
    constexpr uint64_t kMessages = 100;
    r.Do([&r] { ASSERT_TRUE(r.transport().Reserve(1).ok()); });
    auto data = std::make_shared<std::byte*>(nullptr);
    for (uint64_t seed = 0; seed < kMessages; ++seed) {
      Ship(
          r,
          [&r, data, seed] {
            *data = r.FilledBuffer(kBytes, seed);
            return *data;
          },
          kBytes, seed);
      r.Do([&r, data] {
        if (r.rank() == 0) r.FreeBuffer(*data);
      });
    }
  });
}

// A receiver may go before its sender has heard from it.
TEST(CudaIpcTransportTest, EventsOutliveTheirTransports) {
  Configure(1);
  std::atomic<bool> gone{false};
  RunOnThreads(OneNode(2), RanksOn(1), [&gone](ContractRank& r) {
    constexpr size_t kBytes = 3000;
    r.Do([&r] { ASSERT_TRUE(r.transport().Reserve(1).ok()); });
    auto cookie = std::make_shared<uint64_t>(0);
    r.Do([&r, &gone, cookie] {
      const TransportOp op = r.rank() == 0 ? r.Send(1, 0, r.FilledBuffer(kBytes, 5), kBytes)
                                           : r.Receive(0, 0, r.Buffer(kBytes), kBytes);
      *cookie = op.cookie;
      r.Start({op});
      while (r.rank() == 0 && !gone) std::this_thread::yield();
    });
    r.UntilAllEnded();
    r.Do([&r, &gone, cookie] {
      EXPECT_TRUE(r.Outcome(*cookie).ok()) << r.Outcome(*cookie);
      if (r.rank() == 0) return;
      r.DestroyTransports();
      gone = true;
    });
  });
}

TEST(CudaIpcTransportTest, SaysWhatMemoryOthersCannotOpen) {
  Configure(1);
  RunOnThreads(OneNode(2), RanksOn(1), [](ContractRank& r) {
    r.Do([&r] { ASSERT_TRUE(r.transport().Reserve(1).ok()); });
    auto host = std::make_shared<std::vector<std::byte>>(100);
    auto cookie = std::make_shared<uint64_t>(0);
    r.Do([&r, host, cookie] {
      const TransportOp op =
          r.rank() == 0 ? r.Send(1, 0, host->data(), 100) : r.Receive(0, 0, r.Buffer(100), 100);
      *cookie = op.cookie;
      r.Start({op});
    });
    r.UntilAllEnded();
    r.Do([&r, host, cookie] {
      EXPECT_THAT(r.Outcome(*cookie), IsError(absl::StatusCode::kFailedPrecondition,
                                              "no device memory of this process"));
      EXPECT_THAT(r.Outcome(*cookie),
                  IsError(absl::StatusCode::kFailedPrecondition, "from rank 0 to rank 1"));
    });
  });
}

}  // namespace
}  // namespace sluice
