// Which GPUs sessions make contexts on, and that threads keep what they had. And streams that the
// application captures into graphs while sessions work. The fakes' calls need contexts as the
// vendor's do, and a capture forbids there what the vendor's forbids, and is lost if somebody
// tries.
#include <cuda_runtime_api.h>

#include <optional>
#include <thread>
#include <tuple>

#include "cuda/cuda_captured_stream.h"
#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_nccl.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/job.h"
#include "session/specs.h"
#include "sluice/cuda.h"

namespace sluice::session_test {
namespace {

constexpr int kNoContext = -1;

class CudaContextTest : public testing::TestWithParam<std::tuple<FakeTransport, bool>> {
 protected:
  static FakeTransport transport() { return std::get<0>(GetParam()); }
  static SessionOptions Options() {
    return {.bucket_bytes = 4096, .progress_thread = std::get<1>(GetParam())};
  }
};

// Two runs of a session of this rank's.
void RunSession(Rank& self, const SessionOptions& options) {
  const auto session = OpenSession(self, options);
  Bound bound = CompileBound(session.get(), AllToAll(self.size, 8192));
  for (uint64_t round = 1; round <= 2; ++round) RunOnce(session.get(), &bound, round);
  EXPECT_TRUE(session->Close().ok());
}

// As programs do that give each rank an ordinal, and leave the rest to the session.
TEST_P(CudaContextTest, ThreadsThatNeverChooseADevice) {
  RunRanksOnFakeGpus(
      2, 2, transport(),
      [](Rank& self) {
        EXPECT_EQ(FakeCudaCurrentContext(), kNoContext);
        RunSession(self, Options());
        EXPECT_EQ(FakeCudaCurrentContext(), kNoContext);
      },
      /*others=*/1);
  EXPECT_FALSE(FakeCudaHasContext(0));
  EXPECT_TRUE(FakeCudaHasContext(1));
  EXPECT_TRUE(FakeCudaHasContext(2));
}

TEST_P(CudaContextTest, ThreadsKeepTheirContext) {
  RunRanksOnFakeGpus(
      2, 2, transport(),
      [](Rank& self) {
        ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
        RunSession(self, Options());
        EXPECT_EQ(FakeCudaCurrentContext(), 0);
        int device = -1;
        EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
        EXPECT_EQ(device, 0);
      },
      /*others=*/1);
}

// What is made on one thread may end on another.
TEST_P(CudaContextTest, SessionsEndOnOtherThreads) {
  RunRanksOnFakeGpus(
      2, 2, transport(),
      [](Rank& self) {
        auto session = OpenSession(self, Options());
        Bound bound = CompileBound(session.get(), AllToAll(self.size, 8192));
        RunOnce(session.get(), &bound, 1);
        std::thread([&] {
          EXPECT_TRUE(session->Close().ok());
          session.reset();
          bound = Bound{nullptr, RankMemory({}, 0)};
          EXPECT_EQ(FakeCudaCurrentContext(), kNoContext);
        }).join();
      },
      /*others=*/1);
  EXPECT_FALSE(FakeCudaHasContext(0));
}

// A failed communicator is aborted, on a thread that never chose a device.
TEST(CudaContextOfAbortTest, IsOfNoOtherGpu) {
  FakeNcclFailKernel(1, 2, ncclRemoteError);
  RunRanksOnFakeGpus(
      2, 2, FakeTransport::kNccl,
      [](Rank& self) {
        const auto session = OpenSession(self, {.bucket_bytes = 4096});
        Bound bound = CompileBound(session.get(), AllToAll(self.size, 32 << 10));
        const auto run = StartRun(session.get(), &bound, 1);
        EXPECT_FALSE(run.Wait().ok());
        EXPECT_TRUE(session->Close().ok());
      },
      /*others=*/1);
  EXPECT_FALSE(FakeCudaHasContext(0));
}

INSTANTIATE_TEST_SUITE_P(
    Fakes, CudaContextTest,
    testing::Combine(testing::Values(FakeTransport::kMessages, FakeTransport::kNccl,
                                     FakeTransport::kNcclRegistered, FakeTransport::kCudaIpc),
                     testing::Bool()),
    [](const auto& test) {
      return NameOf(std::get<0>(test.param)) + (std::get<1>(test.param) ? "Thread" : "");
    });

class CudaCaptureTest : public testing::TestWithParam<FakeTransport> {
 protected:
  static SessionOptions Options() { return {.bucket_bytes = 4096, .progress_thread = true}; }
};

// From before the session is made until it is closed. NCCL makes and destroys communicators on
// threads of its own, which a capture in the global mode forbids: there it captures between.
TEST_P(CudaCaptureTest, AnotherThreadMayCapture) {
  const bool between = GetParam() == FakeTransport::kNccl;
  RunRanksOnFakeGpus(2, 2, GetParam(), [between](Rank& self) {
    std::optional<CapturingThread> capturing;
    if (!between) capturing.emplace(self.rank);
    const auto session = OpenSession(self, Options());
    Bound bound = CompileBound(session.get(), AllToAll(2, 20000));
    RunOnce(session.get(), &bound, 1);
    if (between) capturing.emplace(self.rank);
    for (uint64_t round = 2; round <= 2; ++round) RunOnce(session.get(), &bound, round);
    if (between) capturing.reset();
    EXPECT_TRUE(session->Close().ok());
    self.meet();  // the other's calls are over, too
  });
}

// Between the session's calls, while its thread works.
TEST_P(CudaCaptureTest, TheSessionsOwnThreadMayCapture) {
  RunRanksOnFakeGpus(2, 2, GetParam(), [](Rank& self) {
    const auto session = OpenSession(self, Options());
    Bound bound = CompileBound(session.get(), AllToAll(2, 20000));
    for (uint64_t round = 1; round <= 2; ++round) {
      const auto run = StartRun(session.get(), &bound, round);
      CapturedStream stream(self.rank);
      while (!run.IsDone()) std::this_thread::yield();
      EXPECT_TRUE(run.Wait().ok());
      stream.End();
      EXPECT_EQ(bound.memory.Check(round), "");
    }
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);  // as it was
    EXPECT_TRUE(session->Close().ok());
  });
}

// Every rank hears of it, and the session is not made.
TEST(CudaCaptureNcclTest, NoCommunicatorIsMadeBesideACaptureInTheGlobalMode) {
  RunRanksOnFakeGpus(2, 2, FakeTransport::kNccl, [](Rank& self) {
    CapturedStream stream(self.rank);
    self.meet();
    const auto session = Session::Create(
        std::move(self.fabric), {.accelerator = self.accelerator, .transport = self.transport});
    EXPECT_FALSE(session.ok());
    EXPECT_THAT(session.status().message(), testing::HasSubstr("NCCL failed"));
    self.meet();
    stream.Lose();
  });
}

TEST_P(CudaCaptureTest, NoRunTakesPartInACapturedStream) {
  RunRanksOnFakeGpus(2, 2, GetParam(), [](Rank& self) {
    const auto session = OpenSession(self, Options());
    Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
    CapturedStream stream(self.rank);
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst(),
                                    {.stream = ToHandle(stream.get())});
    EXPECT_THAT(run.status(),
                Fails(absl::StatusCode::kFailedPrecondition, "captured into a graph"));
    stream.End();
    RunOnce(session.get(), &bound, 1);  // the session stays usable
    EXPECT_TRUE(session->Close().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Fakes, CudaCaptureTest, FakeTransports(), NameOfParam);

}  // namespace
}  // namespace sluice::session_test
