// Bad input and failures on GPUs: a Status on every rank, and nothing is left behind.
#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "fakes/fake_nccl.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/failed_close.h"
#include "session/job.h"
#include "sluice/nccl.h"

namespace sluice::session_test {
namespace {

using testing::HasSubstr;

TEST(CudaFailureTest, MemoryThatIsNotWhatItIsSaidToBe) {
  RunRanksOnFakeGpus(2, 2, FakeTransport::kMessages, [](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
    const auto refused = [&](TensorView src, const std::string& text) {
      const auto run = session->Start(bound.transfer, {src}, bound.memory.dst()).value();
      EXPECT_THAT(run.Wait(), Fails(absl::StatusCode::kInvalidArgument, text));
    };
    TensorView other_device = bound.memory.src()[0];
    other_device.device_ordinal = 1 - self.rank;
    refused(other_device, "memory of device");
    std::vector<double> host(
        static_cast<size_t>(bound.memory.src()[0].shape[0] * bound.memory.src()[0].shape[1]));
    TensorView not_on_device = bound.memory.src()[0];
    not_on_device.data = host.data();
    refused(not_on_device, "source of tensor 0");
    RunOnce(session.get(), &bound, 1);  // the session stays usable
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(CudaFailureTest, AStreamOfAnotherDevice) {
  RunRanksOnFakeGpus(2, 2, FakeTransport::kNccl, [](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
    ASSERT_EQ(cudaSetDevice(1 - self.rank), cudaSuccess);
    const ScopedStream stream;
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst(),
                                    {.stream = StreamHandle{stream.get()}});
    EXPECT_THAT(run.status(), Fails(absl::StatusCode::kInvalidArgument, "stream"));
    RunOnce(session.get(), &bound, 1);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(CudaFailureTest, AStreamWithoutAnAccelerator) {
  RunRanks(1, [](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    Bound bound = CompileBound(session.get(), AllToAll(1, 4096));
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst(),
                                    {.stream = StreamHandle()});
    EXPECT_EQ(run.status().code(), absl::StatusCode::kFailedPrecondition) << run.status();
    EXPECT_TRUE(session->Close().ok());
  });
}

// Offers that no receive has met do not hold up Close.
TEST(CudaFailureTest, CudaIpcClosesSoon) {
  for (const Failing failing : {Failing::kNeverStarts, Failing::kLateMemory}) {
    RunRanksOnFakeGpus(3, 2, FakeTransport::kCudaIpc,
                       [failing](Rank& self) { FailAndClose(self, failing, false); });
    ASSERT_FALSE(HasFailure());
  }
}

TEST(CudaFailureTest, NcclFailsHalfWay) {
  for (const int kernel : {2, 5}) {
    FakeNcclFailKernel(1, kernel, ncclRemoteError);
    RunRanksOnFakeGpus(3, 3, FakeTransport::kNccl, [](Rank& self) {
      const auto session = OpenSession(
          self, {.bucket_bytes = 4096, .budget_buckets = 2, .timeout = absl::Minutes(2)});
      Bound bound = CompileBound(session.get(), AllToAll(3, 32 << 10));
      const auto run = StartRun(session.get(), &bound, 1);
      EXPECT_FALSE(run.Wait().ok());
      EXPECT_EQ(session->Close(), absl::OkStatus());
    });
    ASSERT_FALSE(HasFailure()) << "kernel " << kernel;
  }
}

// Nothing is left of a failed session that is destroyed without Close, either.
TEST(CudaFailureTest, NcclFailsAndNobodyCloses) {
  FakeNcclFailKernel(1, 2, ncclRemoteError);
  RunRanksOnFakeGpus(3, 3, FakeTransport::kNccl, [](Rank& self) {
    auto session = OpenSession(self, {.bucket_bytes = 4096, .timeout = absl::Minutes(2)});
    Bound bound = CompileBound(session.get(), AllToAll(3, 32 << 10));
    const auto run = StartRun(session.get(), &bound, 1);
    EXPECT_FALSE(run.Wait().ok());
    session.reset();
  });
}

// What Compile has prepared is given up while the device has not yet come past all of it.
TEST(CudaFailureTest, ARankIsSilentWhileAnotherOneCompiles) {
  for (const FakeTransport transport : {FakeTransport::kNccl, FakeTransport::kCudaIpc}) {
    RunRanksOnFakeGpus(2, 2, transport, [](Rank& self) {
      const auto session = OpenSession(self, {.timeout = absl::Seconds(2)});
      absl::Status status;
      if (self.rank == 0) {
        status = session->Compile(AllToAll(2, 4096)).status();
        self.meet();
      } else {
        self.meet();
        while (status.ok()) status = session->Poll();
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
      EXPECT_EQ(session->Close(), absl::OkStatus());
    });
    ASSERT_FALSE(HasFailure()) << NameOf(transport);
  }
}

// NCCL's abort may wait for other ranks. All hear what went wrong, and Close says that memory may
// still be in use.
TEST(CudaFailureTest, AnAbortThatDoesNotComeBackHidesNothing) {
  FakeNcclHoldAborts(true);
  FakeNcclFailKernel(1, 2, ncclRemoteError);
  RunRanksOnFakeGpus(3, 3, FakeTransport::kNccl, [](Rank& self) {
    self.transport = *MakeNcclTransport(self.accelerator, {.timeout = absl::Seconds(3)});
    const auto session = OpenSession(self, {.bucket_bytes = 4096, .timeout = absl::Seconds(5)});
    Bound bound = CompileBound(session.get(), Ring(3, 32));
    const auto run = StartRun(session.get(), &bound, 1);
    const absl::Status waited = run.Wait();
    EXPECT_THAT(waited.ToString(), HasSubstr("ncclRemoteError"));
    EXPECT_EQ(session->Close().code(), absl::StatusCode::kDeadlineExceeded);
  });
  FakeNcclHoldAborts(false);
  // Staging stays for good, for who may still use it. The tensors are gone, though Close warned.
  for (const std::string& left : FakeCudaCheckClean()) {
    EXPECT_THAT(left, testing::AnyOf(HasSubstr("memory"), HasSubstr("a kernel of NCCL's uses")));
  }
}

}  // namespace
}  // namespace sluice::session_test
