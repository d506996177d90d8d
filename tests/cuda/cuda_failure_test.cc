// Bad input and failures on GPUs: a Status on every rank, and nothing is left behind.
#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_nccl.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

using testing::HasSubstr;

class CudaFailureTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()); }
};

void ExpectRefused(const absl::Status& status, const std::string& text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

TEST_F(CudaFailureTest, MemoryThatIsNotWhatItIsSaidToBe) {
  RunRanksOnFakeGpus(2, 2, FakeTransport::kMessages, [](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
    ASSERT_NE(bound.transfer, nullptr);
    const auto refused = [&](TensorView src, const std::string& text) {
      const auto run = session->Start(bound.transfer, {src}, bound.memory.dst());
      ASSERT_TRUE(run.ok()) << run.status();
      ExpectRefused(session->Wait(*run), text);
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

TEST_F(CudaFailureTest, AStreamOfAnotherDevice) {
  RunRanksOnFakeGpus(2, 2, FakeTransport::kNccl, [](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
    ASSERT_NE(bound.transfer, nullptr);
    ASSERT_EQ(cudaSetDevice(1 - self.rank), cudaSuccess);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    StartOptions options;
    options.stream = StreamHandle{stream};
    const auto run =
        session->Start(bound.transfer, bound.memory.src(), bound.memory.dst(), options);
    ExpectRefused(run.status(), "stream");
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    RunOnce(session.get(), &bound, 1);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST_F(CudaFailureTest, AStreamWithoutAnAccelerator) {
  RunRanks(1, [](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(1, 4096));
    ASSERT_NE(bound.transfer, nullptr);
    StartOptions options;
    options.stream = StreamHandle();
    const auto run =
        session->Start(bound.transfer, bound.memory.src(), bound.memory.dst(), options);
    EXPECT_EQ(run.status().code(), absl::StatusCode::kFailedPrecondition) << run.status();
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST_F(CudaFailureTest, NcclFailsHalfWay) {
  for (const int kernel : {2, 5}) {
    FakeNcclFailKernel(1, kernel, ncclRemoteError);
    RunRanksOnFakeGpus(3, 3, FakeTransport::kNccl, [](Rank& self) {
      SessionOptions options;
      options.bucket_bytes = 4096;
      options.budget_buckets = 2;
      options.timeout = absl::Seconds(20);
      const auto session = OpenSession(self, options);
      ASSERT_NE(session, nullptr);
      Bound bound = CompileBound(session.get(), AllToAll(3, 32 << 10));
      ASSERT_NE(bound.transfer, nullptr);
      bound.memory.Prepare(1);
      const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst());
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_FALSE(session->Wait(*run).ok());
      const absl::Status closed = session->Close();
      EXPECT_TRUE(closed.ok()) << closed;
    });
    ASSERT_FALSE(HasFailure()) << "kernel " << kernel;
  }
}

}  // namespace
}  // namespace sluice::session_test
