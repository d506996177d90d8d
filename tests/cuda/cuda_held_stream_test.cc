// More pieces than a device takes at a time, behind a stream of the caller's that stands still:
// every call comes back meanwhile, and every element arrives afterwards.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cuda/fake_world.h"
#include "device/cuda_held.h"
#include "fakes/fake_cuda.h"
#include "gmock/gmock.h"
#include "oracle/sampled.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

// A device takes 64 batches of 255 pieces, and its stream some more.
constexpr int kTensors = oracle::kSanitized ? 18000 : 25000;
constexpr int64_t kElements = 2;
// Tensors do not touch, so that no two of them are one stretch.
constexpr int64_t kPitch = 2 * kElements;
constexpr int kPolls = 50;

struct Job {
  Placement src_placement = Placement::Replicate();
  int src_ranks = 1;  // from rank 0 on
  int dst_rank = 0;
  DType dst_dtype = DType::kF64;
};

TransferSpec ManyTensors(const Job& job) {
  std::vector<int> ranks(static_cast<size_t>(job.src_ranks));
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
  TransferSpec spec;
  for (int i = 0; i < kTensors; ++i) {
    spec.tensors.push_back({.name = absl::StrCat("t", i),
                            .shape = {kElements},
                            .src_dtype = DType::kF64,
                            .dst_dtype = job.dst_dtype,
                            .src = {*Mesh::Create({job.src_ranks}, ranks), {job.src_placement}},
                            .dst = {*Mesh::Create({1}, {job.dst_rank}), {Placement::Replicate()}}});
  }
  return spec;
}

// One allocation with room for all tensors, of up to 8 bytes an element.
class Block {
 public:
  Block() { EXPECT_EQ(cudaMalloc(&data_, kBytes), cudaSuccess); }
  ~Block() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::vector<TensorView> Views(int ordinal, DType dtype) const {
    std::vector<TensorView> views;
    for (int64_t i = 0; i < kTensors; ++i) {
      auto* const at = static_cast<std::byte*>(data_) + i * kPitch * DTypeBytes(dtype);
      views.push_back(DenseView(at, {kElements}, dtype));
      views.back().device = DeviceKind::kCuda;
      views.back().device_ordinal = ordinal;
    }
    return views;
  }
  template <class T>
  T* OnHost() const {
    return static_cast<T*>(FakeCudaHostPointer(data_, kBytes));
  }

 private:
  static constexpr size_t kBytes = size_t{kTensors} * kPitch * sizeof(double);
  void* data_ = nullptr;
};

// Small whole numbers: sums of them are exact in every type.
double ValueOf(int64_t tensor, int64_t element) {
  return static_cast<double>((tensor * kElements + element) % 1000);
}

void FillSource(const Block& src) {
  for (int64_t i = 0; i < kTensors; ++i) {
    for (int64_t e = 0; e < kElements; ++e) src.OnHost<double>()[i * kPitch + e] = ValueOf(i, e);
  }
}

template <class T>
int64_t WrongElements(const Block& dst, int contributions) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < kTensors; ++i) {
    for (int64_t e = 0; e < kElements; ++e) {
      const double expected = contributions * ValueOf(i, e);
      wrong += static_cast<double>(dst.OnHost<T>()[i * kPitch + e]) != expected ? 1 : 0;
    }
  }
  return wrong;
}

class CudaHeldStreamTest : public testing::TestWithParam<FakeTransport> {
 protected:
  void TearDown() override { EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()); }

  // A run on `size` ranks, of which `held` takes part with a stream that stands still until all of
  // them have come back from their calls.
  static void RunHeld(int size, int held_rank, const Job& job) {
    RunRanksOnFakeGpus(size, size, GetParam(), [&](Rank& self) {
      SessionOptions options;
      options.bucket_bytes = int64_t{1} << 20;  // all tensors are one bucket
      const auto session = OpenSession(self, options);
      const auto transfer = session->Compile(ManyTensors(job)).value();
      ASSERT_EQ(cudaSetDevice(self.rank), cudaSuccess);
      const Block src;
      const Block dst;
      std::vector<TensorView> from(kTensors);
      std::vector<TensorView> to(kTensors);
      if (self.rank < job.src_ranks) from = src.Views(self.rank, DType::kF64);
      if (self.rank == job.dst_rank) to = dst.Views(self.rank, job.dst_dtype);
      FillSource(src);
      cudaStream_t stream = nullptr;
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
      {
        std::unique_ptr<Held> held;
        const StartOptions in = {.stream = StreamHandle{stream}};
        if (self.rank == held_rank) held = std::make_unique<Held>(stream);
        const auto run = session->Start(transfer, from, to, held ? in : StartOptions()).value();
        for (int i = 0; i < kPolls; ++i) {
          ASSERT_EQ(session->Poll(), absl::OkStatus());
          self.meet();
        }
        held.reset();
        ASSERT_EQ(run.Wait(), absl::OkStatus());
      }
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
      if (self.rank == job.dst_rank) {
        EXPECT_EQ(job.dst_dtype == DType::kF32 ? WrongElements<float>(dst, job.src_ranks)
                                               : WrongElements<double>(dst, job.src_ranks),
                  0);
      }
      EXPECT_TRUE(session->Close().ok());
    });
  }
};

TEST_P(CudaHeldStreamTest, WithinARank) { RunHeld(1, 0, Job()); }

TEST_P(CudaHeldStreamTest, TheSenderIsHeld) {
  Job job;
  job.dst_rank = 1;
  RunHeld(2, 0, job);
}

TEST_P(CudaHeldStreamTest, TheReceiverIsHeld) {
  Job job;
  job.dst_rank = 1;
  RunHeld(2, 1, job);
}

// Contributions are added, and the result is cast.
TEST_P(CudaHeldStreamTest, TheOwnerIsHeld) {
  Job job;
  job.src_placement = Placement::Partial(ReduceOp::kSum);
  job.src_ranks = 3;
  job.dst_rank = 1;
  job.dst_dtype = DType::kF32;
  RunHeld(3, 1, job);
}

class CudaHeldForLongTest : public testing::TestWithParam<std::tuple<FakeTransport, int>> {
 protected:
  void TearDown() override { EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()); }
};

// Whether all pieces are in the session's stream, or most have to wait with the host.
TEST_P(CudaHeldForLongTest, IsNoStall) {
  const auto [transport, tensors] = GetParam();
  RunRanksOnFakeGpus(1, 1, transport, [tensors = tensors](Rank& self) {
    const SessionOptions options = {.timeout = absl::Seconds(1)};
    const auto session = OpenSession(self, options);
    TransferSpec spec = ManyTensors(Job());
    spec.tensors.resize(static_cast<size_t>(tensors));
    const auto transfer = session->Compile(spec).value();
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    const Block src;
    const Block dst;
    std::vector<TensorView> from = src.Views(0, DType::kF64);
    std::vector<TensorView> to = dst.Views(0, DType::kF64);
    from.resize(spec.tensors.size());
    to.resize(spec.tensors.size());
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    {
      Held held(stream);
      const auto run = session->Start(transfer, from, to, {.stream = StreamHandle{stream}}).value();
      const absl::Time end = absl::Now() + options.timeout * 3 / 2;
      absl::Status status;
      while (status.ok() && absl::Now() < end) status = session->Poll();
      ASSERT_TRUE(status.ok()) << status;
      held.LetGo();
      status = run.Wait();
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_TRUE(session->Close().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Fakes, CudaHeldForLongTest,
                         testing::Combine(testing::Values(FakeTransport::kNccl,
                                                          FakeTransport::kCudaIpc),
                                          testing::Values(10, 5000)),
                         [](const auto& test) {
                           return absl::StrCat(NameOf(std::get<0>(test.param)),
                                               std::get<1>(test.param));
                         });

INSTANTIATE_TEST_SUITE_P(Fakes, CudaHeldStreamTest,
                         testing::Values(FakeTransport::kMessages, FakeTransport::kNccl,
                                         FakeTransport::kCudaIpc),
                         [](const auto& test) { return NameOf(test.param); });

}  // namespace
}  // namespace sluice::session_test
