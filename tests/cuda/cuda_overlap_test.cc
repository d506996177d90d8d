// What a session does on a GPU while a group of NCCL waits for its receiver.
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "gmock/gmock.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

constexpr int64_t kRows = 64;
constexpr int64_t kColumns = 1024;
constexpr int kTensors = 16;
constexpr int kWindow = 8;  // tensors
constexpr size_t kBytes = size_t{kRows * kColumns} * 4;

// From rank 0 to rank 1, each tensor a bucket, in two windows.
TransferSpec Across() {
  TransferSpec spec;
  for (int i = 0; i < kTensors; ++i) {
    spec.tensors.push_back({.name = "t" + std::to_string(i),
                            .shape = {kRows, kColumns},
                            .src = {*Mesh::Create({1}, {0}), {Placement::Replicate()}},
                            .dst = {*Mesh::Create({1}, {1}), {Placement::Replicate()}},
                            .window = i / kWindow});
  }
  return spec;
}

// Memory for all tensors, column-major, so that they have to be packed and unpacked.
class Block {
 public:
  explicit Block(int value) {
    EXPECT_EQ(cudaMalloc(&data_, kTensors * kBytes), cudaSuccess);
    const std::vector<std::byte> filled(kTensors * kBytes, static_cast<std::byte>(value));
    EXPECT_EQ(cudaMemcpy(data_, filled.data(), filled.size(), cudaMemcpyDefault), cudaSuccess);
  }
  ~Block() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::vector<TensorView> Views(int device) const {
    std::vector<TensorView> views;
    for (size_t i = 0; i < kTensors; ++i) {
      views.push_back(DenseView(data_, {kRows, kColumns}, DType::kF32));
      views.back().byte_offset = static_cast<int64_t>(i * kBytes);
      views.back().strides = {1, kRows};
      views.back().device = DeviceKind::kCuda;
      views.back().device_ordinal = device;
    }
    return views;
  }
  std::vector<std::byte> Content() const {
    std::vector<std::byte> content(kTensors * kBytes);
    EXPECT_EQ(cudaMemcpy(content.data(), data_, content.size(), cudaMemcpyDefault), cudaSuccess);
    return content;
  }

 private:
  void* data_ = nullptr;
};

// A group has half of the budget. The receiver lacks memory for the second window, so its first
// group waits, and the buckets of the next one are packed meanwhile.
TEST(CudaOverlapTest, BucketsArePackedWhileAGroupWaitsForItsReceiver) {
  std::atomic<bool> packed = false;
  RunRanksOnFakeGpus(2, 2, FakeTransport::kNccl, [&](Rank& self) {
    const auto session = OpenSession(
        self,
        {.bucket_bytes = int64_t{kBytes}, .max_in_flight = kWindow, .budget_buckets = kWindow});
    const auto transfer = session->Compile(Across()).value();
    ASSERT_EQ(cudaSetDevice(self.rank), cudaSuccess);
    {
      const Block block(1 + self.rank);
      const std::vector<TensorView> own = block.Views(self.rank);
      const std::vector<TensorView> none(kTensors);
      const bool sends = self.rank == 0;
      const StartOptions start = {.late_destinations = true};
      // The first round connects.
      for (int round = 0; round < 2; ++round) {
        self.meet();
        const int64_t before = FakeCudaKernelsDone();
        self.meet();
        const auto run = session->Start(transfer, sends ? own : none, none, start).value();
        const auto supply = [&](int first) {
          for (int i = first; i < first + kWindow; ++i) {
            ASSERT_EQ(run.Supply(i, own[static_cast<size_t>(i)]), absl::OkStatus());
          }
        };
        if (!sends) supply(0);
        // One launch packs or unpacks a bucket.
        constexpr int64_t kPacked = kTensors + kWindow;
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
        while (round == 1 && !packed) {
          ASSERT_TRUE(session->Poll().ok());
          if (FakeCudaKernelsDone() - before >= kPacked) packed = true;
          ASSERT_LT(std::chrono::steady_clock::now(), deadline)
              << FakeCudaKernelsDone() - before << " buckets of " << kPacked;
        }
        if (!sends) supply(kWindow);
        ASSERT_TRUE(run.Wait().ok());
      }
      EXPECT_THAT(block.Content(), testing::Each(std::byte{1}));
    }
    EXPECT_TRUE(session->Close().ok());
  });
  EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty());
}

}  // namespace
}  // namespace sluice::session_test
