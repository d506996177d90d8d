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
#include "main/fails.h"
#include "oracle/sampled.h"
#include "sluice/nccl.h"
#include "transport/cuda_contract.h"
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

// On a GPU for each rank. Who ends in order waits so long for a rank that does not.
RankMaker NcclRanks(absl::Duration timeout = absl::Minutes(2)) {
  return [timeout](std::unique_ptr<Fabric> fabric) {
    auto memory = CudaContractMemory(fabric->rank(), Maker({.timeout = timeout}));
    return std::make_unique<ContractRank>(std::move(fabric), std::move(memory));
  };
}

std::vector<ContractWorld> Worlds() {
  std::vector<ContractWorld> worlds;
  for (const int size : {1, 2, 3, 5}) {
    if (oracle::kSanitized && size > 3) break;
    worlds.push_back({absl::StrCat("Ranks", size), [size](const ContractScript& script) {
                        Configure(size);
                        RunOnThreads(std::vector<int>(static_cast<size_t>(size), 0), NcclRanks(),
                                     script);
                      }});
  }
  return worlds;
}

INSTANTIATE_TEST_SUITE_P(Nccl, GroupContract, testing::ValuesIn(Worlds()), ContractWorldName);

// The outcome of Open on each rank of a node.
std::vector<absl::Status> OpenOn(const std::vector<int>& ordinals,
                                 const NcclOptions& options = {.timeout = absl::Minutes(2)}) {
  return OpenOnGpus(std::vector<int>(ordinals.size(), 0), ordinals,
                    [&options] { return Maker(options); });
}

TEST(NcclTransportTest, RefusesTwoRanksOnOneGpu) {
  Configure(3);
  EXPECT_THAT(OpenOn({0, 1, 0}), Each(Fails(absl::StatusCode::kFailedPrecondition,
                                            AllOf(HasSubstr("ranks 0 and 2 share the GPU"),
                                                  HasSubstr("use cuda_ipc"), HasSubstr("2.30")))));
}

TEST(NcclTransportTest, RefusesDevicesThatAreNotCuda) {
  Configure(2);
  EXPECT_THAT(OpenOn({0, -1}), Each(Fails(absl::StatusCode::kInvalidArgument, "rank 1: nccl")));
}

TEST(NcclTransportTest, RefusesVersionsThatHang) {
  Configure(2);
  for (const int version : {22902, 22903, 22906, 22809, 22907, 23007}) {
    FakeNcclSetVersion(version);
    const auto outcomes = OpenOn({0, 1});
    if (version > 22900 && version < 22907) {
      EXPECT_THAT(outcomes, Each(Fails(absl::StatusCode::kFailedPrecondition, "NCCL 2.29.")));
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
    const auto outcomes = OpenOn({0, 1, 2});
    EXPECT_THAT(outcomes, Each(Fails(absl::StatusCode::kInternal, call)));
    EXPECT_EQ(FakeNcclFailures(), before + 1) << call;
    EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()) << call;
  }
}

TEST(NcclTransportTest, NamesARankThatDoesNotCome) {
  Configure(2);
  std::vector<absl::Status> outcomes(2);
  OnThreads({0, 0}, [&](std::unique_ptr<Fabric> fabric) {
    if (fabric->rank() == 1) return;
    const std::unique_ptr<Device> device = MakeStreamOnlyDevice(0);
    outcomes[0] =
        Maker({.timeout = absl::Milliseconds(50)})->Open(fabric.get(), device.get()).status();
  });
  EXPECT_THAT(outcomes[0], Fails(absl::StatusCode::kDeadlineExceeded, "for rank 1"));
}

TEST(NcclTransportTest, PassesOptionsOn) {
  Configure(1);
  const auto outcomes = OpenOn({0}, {.max_channels_per_peer = 4, .min_ctas = 2, .max_ctas = 8});
  EXPECT_TRUE(outcomes[0].ok()) << outcomes[0];
  const ncclConfig_t config = FakeNcclLastConfig();
  EXPECT_EQ(config.blocking, 0);
  EXPECT_EQ(config.minCTAs, 2);
  EXPECT_EQ(config.maxCTAs, 8);
  EXPECT_EQ(config.nChannelsPerNetPeer, 4);
}

TEST(NcclTransportTest, LeavesToNcclWhatIsNotSet) {
  Configure(1);
  const auto outcomes = OpenOn({0}, {.min_ctas = 2});
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
                Fails(absl::StatusCode::kInvalidArgument, "max_channels_per_peer" + is_bad));
    EXPECT_THAT(refused({.min_ctas = bad}),
                Fails(absl::StatusCode::kInvalidArgument, "min_ctas" + is_bad));
    EXPECT_THAT(refused({.max_ctas = bad}),
                Fails(absl::StatusCode::kInvalidArgument, "max_ctas" + is_bad));
  }
  EXPECT_THAT(refused({.min_ctas = 9, .max_ctas = 8}),
              Fails(absl::StatusCode::kInvalidArgument, "above max_ctas"));
  EXPECT_THAT(refused({.timeout = absl::ZeroDuration()}),
              Fails(absl::StatusCode::kInvalidArgument, "timeout"));
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
    EXPECT_THAT(outcomes[1], Fails(absl::StatusCode::kUnavailable,
                                   AllOf(HasSubstr("ncclRemoteError"), HasSubstr("rank 1"))));
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
  RunOnThreads({0, 0}, NcclRanks(), [](ContractRank& r) {
    const int peer = 1 - r.rank();
    r.Reserve(2);
    std::byte* const data = r.Buffer(CudaJob::kBytes);
    if (r.rank() == 0) {
      const TransportOp receive = r.Receive(peer, 0, data, CudaJob::kBytes);
      r.Start({receive});
      r.UntilEnded(receive.cookie);
      EXPECT_TRUE(r.Outcome(receive.cookie).ok()) << "in stream order it is done";
    }
    r.transport().Withdraw();
    r.transport().Withdraw();
    r.Read(data, 8);  // waits for the stream
    const TransportOp receive = r.Receive(peer, 0, data, CudaJob::kBytes);
    r.Start({receive});
    r.UntilEnded(receive.cookie);  // not before the abort has come back
    EXPECT_THAT(r.Outcome(receive.cookie),
                Fails(absl::StatusCode::kCancelled, absl::StrCat("from rank ", peer)));
    EXPECT_EQ(r.transport().outstanding(), 0);
  });
}

// One group from rank 0 to rank 1.
TransportOp StartOne(ContractRank& r) {
  r.Reserve(1);
  std::byte* const data = r.Buffer(CudaJob::kBytes);
  return r.rank() == 0 ? r.Send(1, 0, data, CudaJob::kBytes)
                       : r.Receive(0, 0, data, CudaJob::kBytes);
}

// NCCL lets a rank that leaves wait for those that it has met. It does not wait for ever.
TEST(NcclTransportTest, EndsWhileOthersAreLate) {
  Configure(2);
  std::atomic<bool> has_ended = false;
  RunOnThreads({0, 0}, NcclRanks(absl::Seconds(2)), [&](ContractRank& r) {
    const TransportOp op = StartOne(r);
    r.Start({op});
    r.UntilEnded(op.cookie);
    EXPECT_TRUE(r.Outcome(op.cookie).ok()) << r.Outcome(op.cookie);
    r.Read(op.data, 8);  // waits for the stream
    while (r.rank() == 1 && !has_ended) std::this_thread::yield();
    r.DestroyTransports();
    if (r.rank() == 0) has_ended = true;
  });
}

// An error is told at once; memory counts as used until the abort has come back.
TEST(NcclTransportTest, TellsAnErrorBeforeItAborts) {
  Configure(2);
  FakeNcclHoldAborts(true);
  FakeNcclFailKernel(1, 1, ncclRemoteError);
  std::atomic<bool> is_told = false;
  RunOnThreads({0, 0}, NcclRanks(absl::Seconds(2)), [&](ContractRank& r) {
    const TransportOp op = StartOne(r);
    // A kernel that fails soon may be found by Start already.
    absl::Status status = r.transport().Start({op});
    std::vector<TransportEvent> events(1);
    while (status.ok() && !is_told) status = r.transport().Poll(absl::MakeSpan(events)).status();
    EXPECT_EQ(status.ok(), r.rank() == 0);
    if (r.rank() == 1) {
      EXPECT_THAT(status, Fails(absl::StatusCode::kUnavailable, "ncclRemoteError"));
      is_told = true;
    }
    EXPECT_FALSE(r.transport().Part());
    EXPECT_GT(r.transport().outstanding(), 0);
    r.Read(op.data, 8);  // kernels have ended all the same
    r.DestroyTransports();
    r.Forget(op);
  });
  FakeNcclHoldAborts(false);
}

}  // namespace
}  // namespace sluice
