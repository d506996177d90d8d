// Streams that the application captures into graphs while sessions work, over the fakes. A capture
// forbids there what the vendor's forbids, and is lost if somebody tries.
#include <cuda_runtime_api.h>

#include <optional>
#include <thread>

#include "cuda/cuda_captured_stream.h"
#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "gmock/gmock.h"
#include "session/job.h"
#include "session/specs.h"
#include "sluice/cuda.h"

namespace sluice::session_test {
namespace {

class CudaCaptureTest : public testing::TestWithParam<FakeTransport> {
 protected:
  static SessionOptions Options() { return {.bucket_bytes = 4096, .progress_thread = true}; }
  void TearDown() override { EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()); }
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
    EXPECT_EQ(run.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(run.status().message(), testing::HasSubstr("captured into a graph"));
    stream.End();
    RunOnce(session.get(), &bound, 1);  // the session stays usable
    EXPECT_TRUE(session->Close().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Fakes, CudaCaptureTest,
                         testing::Values(FakeTransport::kMessages, FakeTransport::kNccl,
                                         FakeTransport::kCudaIpc),
                         [](const auto& test) { return NameOf(test.param); });

}  // namespace
}  // namespace sluice::session_test
