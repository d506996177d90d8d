// Many tiny tensors in device memory: how many kernels a run launches, and every element of it.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/fake_world.h"
#include "device/cuda/cuda_kernels.h"
#include "fakes/fake_cuda.h"
#include "gmock/gmock.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

constexpr int kTensors = 10000;
constexpr int64_t kElements = 8;
constexpr size_t kBytes = kElements * sizeof(double);
// Tensors do not touch, so that no two of them are one stretch.
constexpr size_t kPitch = 2 * kBytes;

// All tensors, from the first of `size` ranks to the last.
TransferSpec ManyTensors(int size) {
  TransferSpec spec;
  for (int i = 0; i < kTensors; ++i) {
    TensorTransfer tensor;
    tensor.name = "t" + std::to_string(i);
    tensor.shape = {kElements};
    tensor.src_dtype = tensor.dst_dtype = DType::kF64;
    tensor.src = {*Mesh::Create({1}, {0}), {Placement::Replicate()}};
    tensor.dst = {*Mesh::Create({1}, {size - 1}), {Placement::Replicate()}};
    spec.tensors.push_back(tensor);
  }
  return spec;
}

// One allocation with room for all tensors.
class Block {
 public:
  Block() { EXPECT_EQ(cudaMalloc(&data_, kTensors * kPitch), cudaSuccess); }
  ~Block() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::vector<TensorView> Views(int ordinal) const {
    std::vector<TensorView> views;
    for (size_t i = 0; i < kTensors; ++i) {
      views.push_back(
          DenseView(static_cast<std::byte*>(data_) + i * kPitch, {kElements}, DType::kF64));
      views.back().device = DeviceKind::kCuda;
      views.back().device_ordinal = ordinal;
    }
    return views;
  }
  double* OnHost(size_t tensor) const {
    auto* const begin = static_cast<std::byte*>(FakeCudaHostPointer(data_, kTensors * kPitch));
    return reinterpret_cast<double*>(begin + tensor * kPitch);
  }

 private:
  void* data_ = nullptr;
};

double ValueOf(size_t tensor, int64_t element) {
  return static_cast<double>(tensor) * 100 + static_cast<double>(element);
}

class CudaManyTensorsTest : public testing::TestWithParam<FakeTransport> {
 protected:
  void TearDown() override { EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()); }

  // Moves them; how many kernels the second run launches on all ranks.
  static int64_t LaunchesOfARun(int size) {
    int64_t launches = 0;
    RunRanksOnFakeGpus(size, size, GetParam(), [&](Rank& self) {
      SessionOptions options;
      options.bucket_bytes = int64_t{1} << 20;  // all tensors are one bucket
      const auto session = OpenSession(self, options);
      const auto transfer = session->Compile(ManyTensors(size)).value();
      ASSERT_EQ(cudaSetDevice(self.rank), cudaSuccess);
      {
        const Block src;
        const Block dst;
        std::vector<TensorView> from;
        std::vector<TensorView> to;
        if (self.rank == 0) from = src.Views(self.rank);
        if (self.rank == size - 1) to = dst.Views(self.rank);
        for (size_t i = 0; i < kTensors; ++i) {
          for (int64_t e = 0; e < kElements; ++e) src.OnHost(i)[e] = ValueOf(i, e);
        }
        from.resize(kTensors);
        to.resize(kTensors);
        for (int round = 0; round < 2; ++round) {
          self.meet();
          const int64_t before = FakeCudaCalls("cudaLaunchKernel");
          self.meet();
          const auto run = session->Start(transfer, from, to).value();
          ASSERT_EQ(run.Wait(), absl::OkStatus());
          self.meet();
          if (self.rank == 0) launches = FakeCudaCalls("cudaLaunchKernel") - before;
        }
        int64_t wrong = 0;
        for (size_t i = 0; self.rank == size - 1 && i < kTensors; ++i) {
          for (int64_t e = 0; e < kElements; ++e) wrong += dst.OnHost(i)[e] != ValueOf(i, e);
        }
        EXPECT_EQ(wrong, 0);
      }
      EXPECT_TRUE(session->Close().ok());
    });
    return launches;
  }

  static constexpr int64_t kOnOneSide = (kTensors + kPiecesOfLaunch - 1) / kPiecesOfLaunch;
};

TEST_P(CudaManyTensorsTest, FullLaunchesCopyThemWithinARank) {
  EXPECT_EQ(LaunchesOfARun(1), kOnOneSide);
}

// To staging and from there.
TEST_P(CudaManyTensorsTest, FullLaunchesPackAndUnpackThem) {
  EXPECT_EQ(LaunchesOfARun(2), 2 * kOnOneSide);
}

INSTANTIATE_TEST_SUITE_P(Fakes, CudaManyTensorsTest,
                         testing::Values(FakeTransport::kMessages, FakeTransport::kNccl,
                                         FakeTransport::kCudaIpc),
                         [](const auto& test) { return NameOf(test.param); });

}  // namespace
}  // namespace sluice::session_test
