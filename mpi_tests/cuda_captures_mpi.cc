// Streams that the application captures into graphs beside sessions whose ranks are processes: over
// the fakes, and on GPUs.
#include <optional>
#include <thread>

#include "cuda/cuda_captured_stream.h"
#include "cuda_world_mpi.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/job.h"
#include "session/specs.h"

namespace sluice::session_test {
namespace {

class CudaCapturesMpiTest : public testing::TestWithParam<Carrier> {
 protected:
  static SessionOptions Options() {
    SessionOptions options;
    options.bucket_bytes = 64 << 10;
    options.progress_thread = true;
    return options;
  }
};

// From before the session is made until it is closed. NCCL makes and destroys communicators on
// threads of its own, which a capture in the global mode forbids: there it captures between.
TEST_P(CudaCapturesMpiTest, AnotherThreadMayCapture) {
  const bool between = GetParam() == Carrier::kNccl;
  RunOwnRankOn(GetParam(), [between](Rank& self) {
    std::optional<CapturingThread> capturing;
    if (!between) capturing.emplace(self.accelerator->ordinal());
    const auto session = OpenSession(self, Options());
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(self.size, 400000));
    ASSERT_NE(bound.transfer, nullptr);
    RunOnce(session.get(), &bound, 1);
    if (between) capturing.emplace(self.accelerator->ordinal());
    for (uint64_t round = 2; round <= 3; ++round) RunOnce(session.get(), &bound, round);
    if (between) capturing.reset();
    EXPECT_TRUE(session->Close().ok());
    self.meet();  // the other's calls are over, too
  });
}

// Between the session's calls, while its thread works.
TEST_P(CudaCapturesMpiTest, TheSessionsOwnThreadMayCapture) {
  RunOwnRankOn(GetParam(), [](Rank& self) {
    const auto session = OpenSession(self, Options());
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(self.size, 400000));
    ASSERT_NE(bound.transfer, nullptr);
    for (uint64_t round = 1; round <= 3; ++round) {
      bound.memory.Prepare(round);
      const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst());
      ASSERT_TRUE(run.ok()) << run.status();
      CapturedStream stream(self.accelerator->ordinal());
      while (!run->IsDone()) std::this_thread::yield();
      EXPECT_TRUE(run->Wait().ok());
      stream.End();
      EXPECT_EQ(bound.memory.Check(round), "");
    }
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);  // as it was
    EXPECT_TRUE(session->Close().ok());
    self.meet();
  });
}

TEST_P(CudaCapturesMpiTest, NoRunTakesPartInACapturedStream) {
  RunOwnRankOn(GetParam(), [](Rank& self) {
    const auto session = OpenSession(self, Options());
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(self.size, 4096));
    ASSERT_NE(bound.transfer, nullptr);
    CapturedStream stream(self.accelerator->ordinal());
    StartOptions options;
    options.stream = ToHandle(stream.get());
    const auto run =
        session->Start(bound.transfer, bound.memory.src(), bound.memory.dst(), options);
    EXPECT_EQ(run.status().code(), absl::StatusCode::kFailedPrecondition) << run.status();
    EXPECT_THAT(run.status().message(), testing::HasSubstr("captured into a graph"));
    stream.End();
    RunOnce(session.get(), &bound, 1);  // the session stays usable
    EXPECT_TRUE(session->Close().ok());
    self.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(All, CudaCapturesMpiTest,
                         testing::Values(Carrier::kMessages, Carrier::kCudaIpc, Carrier::kNccl),
                         [](const auto& test) { return NameOf(test.param); });

}  // namespace
}  // namespace sluice::session_test
