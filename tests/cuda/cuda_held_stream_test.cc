// Many tiny tensors: how many kernels a run of them launches. And more pieces than a device takes
// at a time, behind a stream of the caller's that stands still: every call comes back meanwhile,
// and every element arrives afterwards.
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
#include "device/cuda/cuda_kernels.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
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

TransferSpec ManyTensors(const Job& job, int count = kTensors) {
  std::vector<int> ranks(static_cast<size_t>(job.src_ranks));
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
  TransferSpec spec;
  for (int i = 0; i < count; ++i) {
    spec.tensors.push_back({.name = absl::StrCat("t", i),
                            .shape = {kElements},
                            .src_dtype = DType::kF64,
                            .dst_dtype = job.dst_dtype,
                            .src = {*Mesh::Create({job.src_ranks}, ranks), {job.src_placement}},
                            .dst = {*Mesh::Create({1}, {job.dst_rank}), {Placement::Replicate()}}});
  }
  return spec;
}

// Room for all tensors, of up to 8 bytes an element. With a `stride` of two no tensor is one
// stretch of bytes, which small copies are: thousands of these are one batch.
class Block : public CudaMemory {
 public:
  explicit Block(int64_t stride = 2)
      : CudaMemory(size_t{kTensors} * kPitch * sizeof(double)), stride_(stride) {}

  int64_t stride() const { return stride_; }

  std::vector<TensorView> Views(int ordinal, DType dtype, int count = kTensors) const {
    std::vector<TensorView> views;
    for (int64_t i = 0; i < count; ++i) {
      void* const at = At(static_cast<size_t>(i * kPitch * DTypeBytes(dtype)));
      views.push_back(DenseView(at, {kElements}, dtype));
      views.back().strides = {stride_};
      views.back().device = DeviceKind::kCuda;
      views.back().device_ordinal = ordinal;
    }
    return views;
  }
  template <class T>
  T* OnHost() const {
    return static_cast<T*>(FakeCudaHostPointer(data(), bytes()));
  }

 private:
  const int64_t stride_;
};

// Small whole numbers: sums of them are exact in every type.
double ValueOf(int64_t tensor, int64_t element) {
  return static_cast<double>((tensor * kElements + element) % 1000);
}

void FillSource(const Block& src) {
  for (int64_t i = 0; i < kTensors; ++i) {
    for (int64_t e = 0; e < kElements; ++e) {
      src.OnHost<double>()[i * kPitch + e * src.stride()] = ValueOf(i, e);
    }
  }
}

template <class T>
int64_t WrongElements(const Block& dst, int contributions, int count = kTensors) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t e = 0; e < kElements; ++e) {
      const double expected = contributions * ValueOf(i, e);
      wrong +=
          static_cast<double>(dst.OnHost<T>()[i * kPitch + e * dst.stride()]) != expected ? 1 : 0;
    }
  }
  return wrong;
}

class CudaHeldStreamTest : public testing::TestWithParam<FakeTransport> {
 protected:
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
      const ScopedStream stream;
      {
        std::unique_ptr<Door> held;
        const StartOptions in = {.stream = StreamHandle{stream.get()}};
        if (self.rank == held_rank) held = std::make_unique<Door>(stream.get());
        const auto run = session->Start(transfer, from, to, held ? in : StartOptions()).value();
        for (int i = 0; i < kPolls; ++i) {
          ASSERT_EQ(session->Poll(), absl::OkStatus());
          self.meet();
        }
        held.reset();
        ASSERT_EQ(run.Wait(), absl::OkStatus());
      }
      EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
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

class CudaHeldForLongTest : public testing::TestWithParam<std::tuple<FakeTransport, int>> {};

// Whether all pieces are in the session's stream, or most have to wait with the host.
TEST_P(CudaHeldForLongTest, IsNoStall) {
  const auto [transport, tensors] = GetParam();
  RunRanksOnFakeGpus(1, 1, transport, [tensors = tensors](Rank& self) {
    const SessionOptions options = {.timeout = absl::Seconds(1)};
    const auto session = OpenSession(self, options);
    const auto transfer = session->Compile(ManyTensors(Job(), tensors)).value();
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    const Block src;
    const Block dst;
    const std::vector<TensorView> from = src.Views(0, DType::kF64, tensors);
    const std::vector<TensorView> to = dst.Views(0, DType::kF64, tensors);
    const ScopedStream stream;
    {
      Door held(stream.get());
      const StartOptions in = {.stream = StreamHandle{stream.get()}};
      const auto run = session->Start(transfer, from, to, in).value();
      const absl::Time end = absl::Now() + options.timeout * 3 / 2;
      absl::Status status;
      while (status.ok() && absl::Now() < end) status = session->Poll();
      ASSERT_TRUE(status.ok()) << status;
      held.Open();
      status = run.Wait();
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
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

class CudaManyTensorsTest : public testing::TestWithParam<FakeTransport> {
 protected:
  // All from the first of `size` ranks to the last; how many kernels the second run launches.
  static int64_t LaunchesOfARun(int size) {
    int64_t launches = 0;
    RunRanksOnFakeGpus(size, size, GetParam(), [&](Rank& self) {
      SessionOptions options;
      options.bucket_bytes = int64_t{1} << 20;  // all tensors are one bucket
      const auto session = OpenSession(self, options);
      const auto transfer = session->Compile(ManyTensors({.dst_rank = size - 1}, kFew)).value();
      ASSERT_EQ(cudaSetDevice(self.rank), cudaSuccess);
      const Block src(1);
      const Block dst(1);
      std::vector<TensorView> from(kFew);
      std::vector<TensorView> to(kFew);
      if (self.rank == 0) from = src.Views(self.rank, DType::kF64, kFew);
      if (self.rank == size - 1) to = dst.Views(self.rank, DType::kF64, kFew);
      FillSource(src);
      for (int round = 0; round < 2; ++round) {
        self.meet();
        const int64_t before = FakeCudaCalls("cudaLaunchKernel");
        self.meet();
        const auto run = session->Start(transfer, from, to).value();
        ASSERT_EQ(run.Wait(), absl::OkStatus());
        self.meet();
        if (self.rank == 0) launches = FakeCudaCalls("cudaLaunchKernel") - before;
      }
      if (self.rank == size - 1) {
        EXPECT_EQ(WrongElements<double>(dst, 1, kFew), 0);
      }
      EXPECT_TRUE(session->Close().ok());
    });
    return launches;
  }

  static constexpr int kFew = 10000;
  static constexpr int64_t kOnOneSide = 4;
};

TEST_P(CudaManyTensorsTest, FullLaunchesCopyThemWithinARank) {
  EXPECT_EQ(LaunchesOfARun(1), kOnOneSide);
}

// To staging and from there.
TEST_P(CudaManyTensorsTest, FullLaunchesPackAndUnpackThem) {
  EXPECT_EQ(LaunchesOfARun(2), 2 * kOnOneSide);
}

// Calls that give a GPU work. Each rank has one for what is copied, and some for the order.
TEST_P(CudaManyTensorsTest, ABucketTakesFewCalls) {
  constexpr int kBuckets = 64;
  constexpr int64_t kElementsOfBucket = 8192;
  constexpr size_t kBytesOfBucket = kElementsOfBucket * sizeof(double);
  const auto calls = [] {
    int64_t sum = 0;
    for (const char* const function :
         {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaEventRecord", "cudaStreamWaitEvent"}) {
      sum += FakeCudaCalls(function);
    }
    return sum;
  };
  RunRanksOnFakeGpus(2, 2, GetParam(), [&](Rank& self) {
    SessionOptions options;
    options.bucket_bytes = kBytesOfBucket;
    const auto session = OpenSession(self, options);
    TransferSpec spec = ManyTensors({.dst_rank = 1}, kBuckets);
    for (TensorTransfer& tensor : spec.tensors) tensor.shape = {kElementsOfBucket};
    const auto transfer = session->Compile(spec).value();
    ASSERT_EQ(cudaSetDevice(self.rank), cudaSuccess);
    const CudaMemory memory(kBuckets * kBytesOfBucket);
    std::vector<TensorView> views(kBuckets);
    for (size_t i = 0; i < kBuckets; ++i) {
      views[i] = DenseView(memory.At(i * kBytesOfBucket), {kElementsOfBucket}, DType::kF64);
      views[i].device = DeviceKind::kCuda;
      views[i].device_ordinal = self.rank;
    }
    const std::vector<TensorView> none(kBuckets);
    for (int round = 0; round < 2; ++round) {
      self.meet();
      const int64_t before = calls();
      self.meet();
      const auto run =
          session->Start(transfer, self.rank == 0 ? views : none, self.rank == 1 ? views : none);
      ASSERT_TRUE(run.ok()) << run.status();
      ASSERT_EQ(run->Wait(), absl::OkStatus());
      self.meet();
      EXPECT_LE(calls() - before, 2 * kBuckets * 8);
      self.meet();
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Fakes, CudaManyTensorsTest, FakeTransports(), NameOfParam);
INSTANTIATE_TEST_SUITE_P(Fakes, CudaHeldStreamTest, FakeTransports(), NameOfParam);

}  // namespace
}  // namespace sluice::session_test
