// Groups over the fake NCCL, ranks as threads: the contract, and what is NCCL's own: how ranks
// connect or do not, errors at every call and half way, and the end by Withdraw.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
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
#include "transport/thread_ranks.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

void Configure(int devices) { FakeCudaConfigure({.devices = devices, .delay_us = 50, .seed = 3}); }

std::shared_ptr<TransportMaker> Maker(const NcclOptions& options = {.timeout = absl::Seconds(10)}) {
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

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FabricContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportContract);
INSTANTIATE_TEST_SUITE_P(Nccl, GroupContract, testing::ValuesIn(Worlds()), ContractWorldName);

// What each rank got from Open on GPU `ordinals[rank]`.
std::vector<absl::Status> OpenOn(const std::vector<int>& nodes, const std::vector<int>& ordinals,
                                 const NcclOptions& options = {.timeout = absl::Seconds(10)}) {
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
  EXPECT_THAT(outcomes[0], IsError(absl::StatusCode::kDeadlineExceeded, "for ranks 1"));
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

TEST(NcclTransportTest, RefusesOptionsThatCannotBe) {
  const auto refused = [](const NcclOptions& options) {
    return MakeNcclTransport(nullptr, options).status();
  };
  EXPECT_THAT(refused({.max_channels_per_peer = -1}),
              IsError(absl::StatusCode::kInvalidArgument, "max_channels_per_peer is -1"));
  EXPECT_THAT(refused({.min_ctas = 65}), IsError(absl::StatusCode::kInvalidArgument, "min_ctas"));
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

// Ranks that exchange groups around a ring until they are done or one has failed, as sessions do
// it: an error of one is raised as an alarm, and all withdraw.
class Job {
 public:
  explicit Job(int size) : size_(size), outcomes_(static_cast<size_t>(size)) {}

  // What each rank got, and that memory and communicators are given back.
  std::vector<absl::Status> Run() {
    OnThreads(OneNode(size_), [&](std::unique_ptr<Fabric> fabric) {
      const int rank = fabric->rank();
      const auto memory = CudaContractMemory(rank, Maker());
      absl::Status status = RunRank(fabric.get(), memory.get());
      outcomes_[static_cast<size_t>(rank)] = std::move(status);
    });
    return outcomes_;
  }

  static constexpr int kGroups = 6;
  static constexpr size_t kBytes = 50000;

 private:
  absl::Status RunRank(Fabric* fabric, ContractMemory* memory) {
    auto transport = memory->OpenTransport(fabric);
    if (!transport.ok()) return transport.status();
    absl::Status status = Exchange(fabric->rank(), memory, **transport);
    if (!status.ok()) alarm_ = true;
    ++done_;
    // Nobody leaves while others may still need to be ended.
    while (done_ < size_ && !alarm_) std::this_thread::yield();
    if (alarm_) (*transport)->Withdraw();
    if (status.ok() && alarm_) status = absl::CancelledError("alarm");
    return status;
  }

  absl::Status Exchange(int rank, ContractMemory* memory, Transport& transport) const {
    absl::Status status = transport.Reserve(2 * kGroups);
    std::byte* const data = memory->Allocate(2 * kBytes);
    status.Update(transport.UseStaging({data, 2 * kBytes}));
    const int next = (rank + 1) % size_, previous = (rank + size_ - 1) % size_;
    for (int group = 0; status.ok() && group < kGroups; ++group) {
      status =
          transport.Start({{TransportOp::Kind::kSend, next, 0, data, kBytes, 1},
                           {TransportOp::Kind::kReceive, previous, 0, data + kBytes, kBytes, 2}});
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (status.ok() && !alarm_ && (transport.outstanding() > 0 || extra_polls_ > 0)) {
      if (transport.outstanding() == 0) --extra_polls_;
      status = PollOnce(transport);
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << "rank " << rank << " hangs";
        return absl::InternalError("hangs");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return status;
  }

  static absl::Status PollOnce(Transport& transport) {
    std::vector<TransportEvent> events(4);
    const absl::StatusOr<int> count = transport.Poll(absl::MakeSpan(events));
    if (!count.ok()) return count.status();
    absl::Status status;
    for (int i = 0; i < *count; ++i) status.Update(events[static_cast<size_t>(i)].status);
    return status;
  }

  const int size_;
  std::vector<absl::Status> outcomes_;
  std::atomic<bool> alarm_{false};
  std::atomic<int> done_{0};
  mutable std::atomic<int> extra_polls_{200};  // what has been launched may yet fail
};

int Failed(const std::vector<absl::Status>& outcomes) {
  int failed = 0;
  for (const absl::Status& outcome : outcomes) failed += outcome.ok() ? 0 : 1;
  return failed;
}

TEST(NcclTransportTest, FailsOnAllRanksOrNoneAtEveryCall) {
  constexpr int kRanks = 3;
  int failing = 0;
  for (int call = 1; call < 10000; call += oracle::kSanitized ? 5 : 1 + call / 40) {
    Configure(kRanks);
    const int before = FakeNcclFailures();
    FakeNcclFailAt(call, ncclInternalError);
    const auto outcomes = Job(kRanks).Run();
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
    const auto outcomes = Job(3).Run();
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
  for (const int kernel : {1, 3, Job::kGroups}) {
    Configure(3);
    FakeNcclFailKernel(1, kernel, ncclRemoteError);
    const auto outcomes = Job(3).Run();
    EXPECT_EQ(Failed(outcomes), 3);
    EXPECT_THAT(outcomes[1], IsError(absl::StatusCode::kUnavailable, "ncclRemoteError"));
    EXPECT_THAT(outcomes[1], IsError(absl::StatusCode::kUnavailable, "rank 1 of 3"));
    EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty());
  }
}

// A rank starts a group that nobody else does: its kernel waits in the stream until Withdraw, after
// which the stream ends, and the transport is good for nothing any more.
TEST(NcclTransportTest, WithdrawEndsWhatIsUnderWay) {
  Configure(2);
  OnThreads(OneNode(2), [&](std::unique_ptr<Fabric> fabric) {
    const int rank = fabric->rank();
    const auto memory = CudaContractMemory(rank, Maker());
    auto opened = memory->OpenTransport(fabric.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    Transport& transport = **opened;
    ASSERT_TRUE(transport.Reserve(2).ok());
    std::byte* const data = memory->Allocate(Job::kBytes);
    std::vector<TransportEvent> events(2);
    const TransportOp receive = {TransportOp::Kind::kReceive, 1 - rank, 0, data, Job::kBytes, 7};
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
    ASSERT_EQ(transport.Poll(absl::MakeSpan(events)).value_or(0), 1);
    EXPECT_EQ(events[0].cookie, 7u);
    EXPECT_THAT(events[0].status,
                IsError(absl::StatusCode::kCancelled, absl::StrCat("from rank ", 1 - rank)));
    EXPECT_EQ(transport.outstanding(), 0);
  });
}

}  // namespace
}  // namespace sluice
