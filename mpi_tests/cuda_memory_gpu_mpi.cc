// Memory that other processes cannot open, and memory that they can, over CUDA IPC on GPUs.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda_world_mpi.h"
#include "gtest/gtest.h"
#include "session/job.h"
#include "session/specs.h"

namespace sluice::session_test {
namespace {

constexpr int64_t kRows = 1000;  // of 8 KiB: several buckets
constexpr size_t kElements = kRows * 1024;
constexpr size_t kBytes = kElements * sizeof(double);

enum class Origin { kMalloc, kPool, kManaged };

std::string NameOf(Origin origin) {
  switch (origin) {
    case Origin::kMalloc:
      return "Malloc";
    case Origin::kPool:
      return "Pool";
    case Origin::kManaged:
      return "Managed";
  }
  return "";
}

// On the current device.
class Block {
 public:
  explicit Block(Origin origin) : origin_(origin) {
    switch (origin) {
      case Origin::kMalloc:
        EXPECT_EQ(cudaMalloc(&data_, kBytes), cudaSuccess);
        break;
      case Origin::kPool:
        EXPECT_EQ(cudaMallocAsync(&data_, kBytes, nullptr), cudaSuccess);
        EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
        break;
      case Origin::kManaged:
        EXPECT_EQ(cudaMallocManaged(&data_, kBytes, cudaMemAttachGlobal), cudaSuccess);
        break;
    }
  }
  ~Block() {
    if (origin_ == Origin::kPool) {
      EXPECT_EQ(cudaFreeAsync(data_, nullptr), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    } else {
      EXPECT_EQ(cudaFree(data_), cudaSuccess);
    }
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void Write(const std::vector<double>& values) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  }
  std::vector<double> Read() const {
    std::vector<double> values(kElements);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }
  TensorView View(int ordinal) const {
    TensorView view = DenseView(data_, {kRows, 1024}, DType::kF64);
    view.device = DeviceKind::kCuda;
    view.device_ordinal = ordinal;
    return view;
  }

 private:
  const Origin origin_;
  void* data_ = nullptr;
};

std::vector<double> ValuesOf(int rank, int round) {
  std::vector<double> values(kElements);
  for (size_t i = 0; i < kElements; ++i) {
    values[i] = 1e7 * (10 * round + rank) + static_cast<double>(i);
  }
  return values;
}

using Memories = std::tuple<Origin, Origin>;  // of sources, of destinations

class CudaMemoryMpiTest : public testing::TestWithParam<Memories> {};

TEST_P(CudaMemoryMpiTest, ArrivesWholeOverCudaIpc) {
  const auto [src_origin, dst_origin] = GetParam();
  RunOwnRankOn(Carrier::kCudaIpc, [from = src_origin, to = dst_origin](Rank& self) {
    const int ordinal = self.accelerator->ordinal();
    EXPECT_EQ(cudaSetDevice(ordinal), cudaSuccess);
    Block src(from);
    Block dst(to);
    SessionOptions options;
    options.bucket_bytes = 1 << 20;
    const auto session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    const auto transfer = session->Compile(Ring(self.size, kRows));
    ASSERT_TRUE(transfer.ok()) << transfer.status();
    session->ResetCounters();
    for (int round = 1; round <= 3; ++round) {
      src.Write(ValuesOf(self.rank, round));
      dst.Write(std::vector<double>(kElements, -1));
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      const auto run = session->Start(*transfer, {src.View(ordinal)}, {dst.View(ordinal)});
      ASSERT_TRUE(run.ok()) << run.status();
      const absl::Status status = run->Wait();
      ASSERT_TRUE(status.ok()) << status;
      const int sender = (self.rank + self.size - 1) % self.size;
      EXPECT_TRUE(dst.Read() == ValuesOf(sender, round)) << "round " << round;
    }
    // What others cannot open goes through staging.
    const int64_t staged = session->counters().staging_bytes_peak;
    if (from != Origin::kMalloc) {
      EXPECT_GT(staged, 0);
    } else if (to == Origin::kMalloc) {
      EXPECT_EQ(staged, 0);
    }
    EXPECT_TRUE(session->Close().ok());
    self.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaMemoryMpiTest,
    testing::Combine(testing::Values(Origin::kMalloc, Origin::kPool, Origin::kManaged),
                     testing::Values(Origin::kMalloc, Origin::kPool, Origin::kManaged)),
    [](const testing::TestParamInfo<Memories>& test) {
      return absl::StrCat(NameOf(std::get<0>(test.param)), "To", NameOf(std::get<1>(test.param)));
    });

}  // namespace
}  // namespace sluice::session_test
