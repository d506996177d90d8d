// Which GPUs sessions make contexts on, and that threads keep what they had: over the fakes, whose
// calls need contexts as the vendor's do.
#include <cuda_runtime_api.h>

#include <thread>
#include <tuple>

#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_nccl.h"
#include "gmock/gmock.h"
#include "session/job.h"
#include "session/specs.h"

namespace sluice::session_test {
namespace {

constexpr int kNoContext = -1;

class CudaContextTest : public testing::TestWithParam<std::tuple<FakeTransport, bool>> {
 protected:
  static FakeTransport transport() { return std::get<0>(GetParam()); }
  static SessionOptions Options() {
    return {.bucket_bytes = 4096, .progress_thread = std::get<1>(GetParam())};
  }
  void TearDown() override { EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()); }
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
  EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Fakes, CudaContextTest,
    testing::Combine(testing::Values(FakeTransport::kMessages, FakeTransport::kNccl,
                                     FakeTransport::kNcclRegistered, FakeTransport::kCudaIpc),
                     testing::Bool()),
    [](const auto& test) {
      return NameOf(std::get<0>(test.param)) + (std::get<1>(test.param) ? "Thread" : "");
    });

}  // namespace
}  // namespace sluice::session_test
