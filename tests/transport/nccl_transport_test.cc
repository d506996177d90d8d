// Groups over the fake NCCL, ranks as threads. The contract, and what is NCCL's own: how ranks
// connect or do not, errors at every call and half way, the end by Withdraw.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/device.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_nccl.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "sluice/nccl.h"
#include "transport/cuda_contract.h"
#include "transport/cuda_job.h"
#include "transport/thread_ranks.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

void Configure(int devices) { FakeCudaConfigure({.devices = devices, .delay_us = 50, .seed = 3}); }

std::shared_ptr<TransportMaker> Maker(const NcclOptions& options = {.timeout = absl::Minutes(2)}) {
  return *MakeNcclTransport(nullptr, options);
}

std::vector<int> OneNode(int size) { return std::vector<int>(static_cast<size_t>(size), 0); }

std::unique_ptr<ContractRank> MakeNcclRank(std::unique_ptr<Fabric> fabric) {
  const int ordinal = fabric->rank();
  return std::make_unique<ContractRank>(std::move(fabric), CudaContractMemory(ordinal, Maker()));
}

std::vector<ContractWorld> Worlds() {
  std::vector<ContractWorld> worlds;
  for (const int size : {1, 2, 3, 5}) {
    if (oracle::kSanitized && size > 3) break;
    worlds.push_back({absl::StrCat("Ranks", size), [size](const ContractScript& script) {
                        Configure(size);
                        RunOnThreads(OneNode(size), MakeNcclRank, script);
                      }});
  }
  return worlds;
}

INSTANTIATE_TEST_SUITE_P(Nccl, GroupContract, testing::ValuesIn(Worlds()), ContractWorldName);

// What each rank got from Open on GPU `ordinals[rank]`.
std::vector<absl::Status> OpenOn(const std::vector<int>& nodes, const std::vector<int>& ordinals,
                                 const NcclOptions& options = {.timeout = absl::Minutes(2)}) {
  std::vector<absl::Status> outcomes(nodes.size());
  OnThreads(nodes, [&](std::unique_ptr<Fabric> fabric) {
    const auto rank = static_cast<size_t>(fabric->rank());
    const std::unique_ptr<Device> device = MakeStreamOnlyDevice(ordinals[rank]);
    outcomes[rank] = Maker(options)->Open(fabric.get(), device.get()).status();
  });
  return outcomes;
}

MATCHER_P2(IsError, code, text, "") {
  return arg.code() == code && std::string(arg.message()).find(text) != std::string::npos;
}

TEST(NcclTransportTest, RefusesTwoRanksOnOneGpu) {
  Configure(3);
  const auto outcomes = OpenOn({0, 0, 0}, {0, 1, 0});
  EXPECT_THAT(
      outcomes,
      Each(AllOf(IsError(absl::StatusCode::kFailedPrecondition, "ranks 0 and 2 share the GPU"),
                 IsError(absl::StatusCode::kFailedPrecondition, "use cuda_ipc"),
                 IsError(absl::StatusCode::kFailedPrecondition, "2.30"))));
}

TEST(NcclTransportTest, RefusesDevicesThatAreNotCuda) {
  Configure(2);
  std::vector<absl::Status> outcomes(2);
  OnThreads(OneNode(2), [&](std::unique_ptr<Fabric> fabric) {
    const auto rank = static_cast<size_t>(fabric->rank());
    const std::unique_ptr<Device> device = rank == 1 ? MakeHostDevice() : MakeStreamOnlyDevice(0);
    outcomes[rank] = Maker()->Open(fabric.get(), device.get()).status();
  });
  EXPECT_THAT(outcomes, Each(IsError(absl::StatusCode::kInvalidArgument, "rank 1: nccl")));
}

TEST(NcclTransportTest, RefusesVersionsThatHang) {
  Configure(2);
  for (const int version : {22902, 22903, 22906, 22809, 22907, 23007}) {
    FakeNcclSetVersion(version);
    const auto outcomes = OpenOn({0, 0}, {0, 1});
    if (version > 22900 && version < 22907) {
      EXPECT_THAT(outcomes, Each(IsError(absl::StatusCode::kFailedPrecondition, "NCCL 2.29.")));
    } else {
      EXPECT_EQ(Failed(outcomes), 0) << version;
    }
  }
  FakeNcclSetVersion(0);
}

TEST(NcclTransportTest, FailsOnAllRanksIfOneCannotConnect) {
  for (const char* const call :
       {"ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommGetAsyncError"}) {
    Configure(3);
    const int before = FakeNcclFailures();
    FakeNcclFailAt(call, 1, ncclSystemError);
    const auto outcomes = OpenOn({0, 0, 0}, {0, 1, 2});
    EXPECT_THAT(outcomes, Each(IsError(absl::StatusCode::kInternal, call)));
    EXPECT_EQ(FakeNcclFailures(), before + 1) << call;
    EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()) << call;
  }
}

TEST(NcclTransportTest, NamesARankThatDoesNotCome) {
  Configure(2);
  std::vector<absl::Status> outcomes(2);
  OnThreads(OneNode(2), [&](std::unique_ptr<Fabric> fabric) {
    if (fabric->rank() == 1) return;
    const std::unique_ptr<Device> device = MakeStreamOnlyDevice(0);
    outcomes[0] =
        Maker({.timeout = absl::Milliseconds(50)})->Open(fabric.get(), device.get()).status();
  });
  EXPECT_THAT(outcomes[0], IsError(absl::StatusCode::kDeadlineExceeded, "for rank 1"));
}

TEST(NcclTransportTest, PassesOptionsOn) {
  Configure(1);
  const auto outcomes =
      OpenOn({0}, {0}, {.max_channels_per_peer = 4, .min_ctas = 2, .max_ctas = 8});
  EXPECT_TRUE(outcomes[0].ok()) << outcomes[0];
  const ncclConfig_t config = FakeNcclLastConfig();
  EXPECT_EQ(config.blocking, 0);
  EXPECT_EQ(config.minCTAs, 2);
  EXPECT_EQ(config.maxCTAs, 8);
  EXPECT_EQ(config.nChannelsPerNetPeer, 4);
}

TEST(NcclTransportTest, LeavesToNcclWhatIsNotSet) {
  Configure(1);
  const auto outcomes = OpenOn({0}, {0}, {.min_ctas = 2});
  EXPECT_TRUE(outcomes[0].ok()) << outcomes[0];
  const ncclConfig_t config = FakeNcclLastConfig();
  EXPECT_EQ(config.minCTAs, 2);
  EXPECT_EQ(config.maxCTAs, NCCL_CONFIG_UNDEF_INT);
  EXPECT_EQ(config.nChannelsPerNetPeer, NCCL_CONFIG_UNDEF_INT);
}

TEST(NcclTransportTest, RefusesOptionsThatCannotBe) {
  const auto refused = [](const NcclOptions& options) {
    return MakeNcclTransport(nullptr, options).status();
  };
  for (const int bad : {-1, 0, 65}) {
    const std::string is_bad = absl::StrCat(" is ", bad, ", not 1 to 64");
    EXPECT_THAT(refused({.max_channels_per_peer = bad}),
                IsError(absl::StatusCode::kInvalidArgument, "max_channels_per_peer" + is_bad));
    EXPECT_THAT(refused({.min_ctas = bad}),
                IsError(absl::StatusCode::kInvalidArgument, "min_ctas" + is_bad));
    EXPECT_THAT(refused({.max_ctas = bad}),
                IsError(absl::StatusCode::kInvalidArgument, "max_ctas" + is_bad));
  }
  EXPECT_THAT(refused({.min_ctas = 9, .max_ctas = 8}),
              IsError(absl::StatusCode::kInvalidArgument, "above max_ctas"));
  EXPECT_THAT(refused({.timeout = absl::ZeroDuration()}),
              IsError(absl::StatusCode::kInvalidArgument, "timeout"));
}

TEST(NcclTransportTest, EstimatesMemory) {
  EXPECT_EQ(NcclBytesEstimate(7, 2), int64_t{7} * 2 * 2 * 10 * 1024 * 1024);
  EXPECT_EQ(NcclBytesEstimate(1, 0), NcclBytesEstimate(1, 32));
  EXPECT_EQ(NcclBytesEstimate(0, 8), 0);
}

// On a GPU for each rank. Who ends in order waits so long for a rank that does not.
std::vector<absl::Status> RunJob(int size) {
  const NcclOptions options = {.register_staging = true, .timeout = absl::Seconds(3)};
  return CudaJob(size, [&](int rank) { return CudaContractMemory(rank, Maker(options)); }).Run();
}

TEST(NcclTransportTest, FailsOnAllRanksOrNoneAtEveryCall) {
  constexpr int kRanks = 3;
  int failing = 0;
  for (int call = 1; call < 10000; call += oracle::kSanitized ? 5 : 1 + call / 40) {
    Configure(kRanks);
    const int before = FakeNcclFailures();
    FakeNcclFailAt(call, ncclInternalError);
    const auto outcomes = RunJob(kRanks);
    const bool was_called = FakeNcclFailures() > before;
    FakeNcclFailNoMore();
    const int failed = Failed(outcomes);
    EXPECT_TRUE(failed == 0 || failed == kRanks)
        << "call " << call << ": " << outcomes[0] << ", " << outcomes[1] << ", " << outcomes[2];
    failing += failed > 0 ? 1 : 0;
    EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()) << "call " << call;
    if (!was_called || HasFailure()) break;
  }
  EXPECT_GT(failing, 10);
}

TEST(NcclTransportTest, FailsInsideAGroup) {
  for (const char* const call :
       {"ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd", "ncclCommRegister"}) {
    Configure(3);
    FakeNcclFailAt(call, 2, ncclInternalError);
    const auto outcomes = RunJob(3);
    EXPECT_EQ(Failed(outcomes), 3) << call;
    std::string all;
    for (const absl::Status& outcome : outcomes) absl::StrAppend(&all, outcome.ToString(), "\n");
    EXPECT_THAT(all, HasSubstr(absl::StrCat(call, " failed: ")));
    EXPECT_THAT(all, HasSubstr("rank"));
    EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()) << call;
  }
}

// The kernels of the others wait for a rank whose kernel has died, until they are aborted.
TEST(NcclTransportTest, FailsHalfWay) {
  for (const int kernel : {1, 3, CudaJob::kGroups}) {
    Configure(3);
    FakeNcclFailKernel(1, kernel, ncclRemoteError);
    const auto outcomes = RunJob(3);
    EXPECT_EQ(Failed(outcomes), 3);
    EXPECT_THAT(outcomes[1], IsError(absl::StatusCode::kUnavailable, "ncclRemoteError"));
    EXPECT_THAT(outcomes[1], IsError(absl::StatusCode::kUnavailable, "rank 1"));
    EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty());
  }
}

TEST(NcclTransportTest, NeverWaitsForTheDevice) {
  Configure(3);
  const int64_t before = FakeCudaHostWaits();
  EXPECT_EQ(Failed(RunJob(3)), 0);
  // Each rank gives its one buffer back, and waits for its stream before that and at the end.
  EXPECT_EQ(FakeCudaHostWaits() - before, 3 * 3);
}

// A rank starts a group that nobody else does. Its kernel waits in the stream until Withdraw. Then
// the stream ends, and the transport is good for nothing any more.
TEST(NcclTransportTest, WithdrawEndsWhatIsUnderWay) {
  Configure(2);
  OnThreads(OneNode(2), [&](std::unique_ptr<Fabric> fabric) {
    const int rank = fabric->rank();
    const auto memory = CudaContractMemory(rank, Maker());
    auto opened = memory->OpenTransport(fabric.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    Transport& transport = **opened;
    ASSERT_TRUE(transport.Reserve(2).ok());
    std::byte* const data = memory->Allocate(CudaJob::kBytes);
    std::vector<TransportEvent> events(2);
    const TransportOp receive = {
        TransportOp::Kind::kReceive, 1 - rank, 0, data, CudaJob::kBytes, 7};
    if (rank == 0) {
      ASSERT_TRUE(transport.Start({receive}).ok());
      absl::StatusOr<int> count = 0;
      while (count.ok() && *count == 0) count = transport.Poll(absl::MakeSpan(events));
      ASSERT_TRUE(count.ok()) << count.status();
      EXPECT_TRUE(events[0].status.ok()) << "in stream order it is done";
    }
    transport.Withdraw();
    transport.Withdraw();
    static_cast<void>(memory->Read(data, 8));  // waits for the stream
    ASSERT_TRUE(transport.Start({receive}).ok());
    absl::StatusOr<int> count = 0;  // none before the abort has come back
    while (count.ok() && *count == 0) count = transport.Poll(absl::MakeSpan(events));
    ASSERT_EQ(count.value_or(0), 1);
    EXPECT_EQ(events[0].cookie, 7u);
    EXPECT_THAT(events[0].status,
                IsError(absl::StatusCode::kCancelled, absl::StrCat("from rank ", 1 - rank)));
    EXPECT_EQ(transport.outstanding(), 0);
  });
}

// One group from rank 0 to rank 1, from what `memory` holds.
absl::Status MoveOnce(int rank, ContractMemory& memory, Transport& transport) {
  absl::Status status = transport.Reserve(1);
  const auto kind = rank == 0 ? TransportOp::Kind::kSend : TransportOp::Kind::kReceive;
  std::byte* const data = memory.Allocate(CudaJob::kBytes);
  status.Update(transport.Start({{kind, 1 - rank, 0, data, CudaJob::kBytes, 1}}));
  std::vector<TransportEvent> events(1);
  absl::StatusOr<int> count = 0;
  while (status.ok() && count.ok() && *count == 0) count = transport.Poll(absl::MakeSpan(events));
  status.Update(count.status());
  static_cast<void>(memory.Read(data, 8));  // waits for the stream
  return status;
}

// NCCL lets a rank that leaves wait for those that it has met. It does not wait for ever.
TEST(NcclTransportTest, EndsWhileOthersAreLate) {
  Configure(2);
  std::atomic<bool> has_ended = false;
  OnThreads(OneNode(2), [&](std::unique_ptr<Fabric> fabric) {
    const int rank = fabric->rank();
    const auto memory = CudaContractMemory(rank, Maker({.timeout = absl::Seconds(2)}));
    auto opened = memory->OpenTransport(fabric.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    const absl::Status moved = MoveOnce(rank, *memory, **opened);
    EXPECT_TRUE(moved.ok()) << moved;
    while (rank == 1 && !has_ended) std::this_thread::yield();
    opened->reset();
    if (rank == 0) has_ended = true;
  });
  EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty());
}

// An error is told at once; memory counts as used until the abort has come back.
TEST(NcclTransportTest, TellsAnErrorBeforeItAborts) {
  Configure(2);
  FakeNcclHoldAborts(true);
  FakeNcclFailKernel(1, 1, ncclRemoteError);
  std::atomic<bool> is_told = false;
  OnThreads(OneNode(2), [&](std::unique_ptr<Fabric> fabric) {
    const int rank = fabric->rank();
    const auto memory = CudaContractMemory(rank, Maker({.timeout = absl::Seconds(2)}));
    auto opened = memory->OpenTransport(fabric.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    Transport& transport = **opened;
    ASSERT_TRUE(transport.Reserve(1).ok());
    const auto kind = rank == 0 ? TransportOp::Kind::kSend : TransportOp::Kind::kReceive;
    std::byte* const data = memory->Allocate(CudaJob::kBytes);
    // A kernel that fails soon may be found by Start already.
    absl::Status status = transport.Start({{kind, 1 - rank, 0, data, CudaJob::kBytes, 1}});
    std::vector<TransportEvent> events(1);
    while (status.ok() && !is_told) status = transport.Poll(absl::MakeSpan(events)).status();
    EXPECT_EQ(status.ok(), rank == 0);
    if (rank == 1) {
      EXPECT_THAT(status, IsError(absl::StatusCode::kUnavailable, "ncclRemoteError"));
      is_told = true;
    }
    EXPECT_FALSE(transport.Part());
    EXPECT_GT(transport.outstanding(), 0);
    static_cast<void>(memory->Read(data, 8));  // kernels have ended all the same
    opened->reset();
  });
  FakeNcclHoldAborts(false);
  EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty());
}

}  // namespace
}  // namespace sluice
