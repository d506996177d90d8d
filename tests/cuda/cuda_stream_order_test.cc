// Runs that take part in a stream of the caller's: they come after what it held, and before what it
// gets later, without a visit of the host.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "gmock/gmock.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

constexpr int64_t kElements = 64 << 10;

// From each rank to the next one, with bytes that are strided at neither end.
TransferSpec Shift(int size) { return Ring(size, kElements / 1024); }

class CudaStreamOrderTest : public testing::TestWithParam<FakeTransport> {
 protected:
  void TearDown() override { EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty()); }
};

// A stream, and device memory that its kernels fill and read.
class Producer {
 public:
  explicit Producer(int device) {
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    for (void** data : {&src_, &dst_}) EXPECT_EQ(cudaMalloc(data, kBytes), cudaSuccess);
  }
  ~Producer() {
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(cudaFree(src_), cudaSuccess);
    EXPECT_EQ(cudaFree(dst_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  StreamHandle stream() const { return {stream_}; }
  void* src() const { return src_; }
  void* dst() const { return dst_; }

  // A kernel that takes its time, and then sets all of the source.
  void Produce(double value) {
    auto* const data = static_cast<double*>(FakeCudaHostPointer(src_, kBytes));
    Launch(src_, [data, value] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      for (int64_t i = 0; i < kElements; ++i) data[i] = value;
    });
  }
  // One that counts what is not `value` in the target, and spoils it.
  void Consume(double value, int64_t* wrong) {
    auto* const data = static_cast<double*>(FakeCudaHostPointer(dst_, kBytes));
    Launch(dst_, [data, value, wrong] {
      for (int64_t i = 0; i < kElements; ++i) *wrong += data[i] != value ? 1 : 0;
      for (int64_t i = 0; i < kElements; ++i) data[i] = -1;
    });
  }

 private:
  static constexpr size_t kBytes = kElements * sizeof(double);

  void Launch(void* data, std::function<void()> kernel) {
    EXPECT_EQ(FakeCudaEnqueue(stream_, std::move(kernel), {{data, kBytes}}), cudaSuccess);
  }

  cudaStream_t stream_ = nullptr;
  void* src_ = nullptr;
  void* dst_ = nullptr;
};

TensorView ViewOf(void* data, int device) {
  TensorView view = DenseView(data, {kElements / 1024, 1024}, DType::kF64);
  view.device = DeviceKind::kCuda;
  view.device_ordinal = device;
  return view;
}

TEST_P(CudaStreamOrderTest, ComesAfterEarlierWorkAndBeforeLater) {
  constexpr int kRanks = 3;
  constexpr int kRounds = 6;
  RunRanksOnFakeGpus(kRanks, kRanks, GetParam(), [](Rank& self) {
    const auto session = OpenSession(self, {.bucket_bytes = 32 << 10, .budget_buckets = 8});
    const auto transfer = session->Compile(Shift(kRanks)).value();
    std::vector<int64_t> wrong(kRounds);
    {
      Producer producer(self.rank);
      const StartOptions in_stream = {.stream = producer.stream()};
      for (int round = 0; round < kRounds; ++round) {
        producer.Produce(100 * self.rank + round);
        const auto run = session->Start(transfer, {ViewOf(producer.src(), self.rank)},
                                        {ViewOf(producer.dst(), self.rank)}, in_stream);
        ASSERT_TRUE(run.ok()) << run.status();
        ASSERT_EQ(run->Wait(), absl::OkStatus());
        const int from = (self.rank + kRanks - 1) % kRanks;
        producer.Consume(100 * from + round, &wrong[static_cast<size_t>(round)]);
      }
    }
    EXPECT_THAT(wrong, testing::Each(0));
    EXPECT_TRUE(session->Close().ok());
  });
}

// NCCL's kernels, and the copies before and after them, are issued one behind the other.
TEST(CudaHostWaitsTest, ThereAreNoneBetweenFillAndDrainOverNccl) {
  constexpr int kRanks = 2;
  RunRanksOnFakeGpus(kRanks, kRanks, FakeTransport::kNccl, [](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    Bound bound = CompileBound(session.get(), AllToAll(kRanks, 256 << 10));
    bound.memory.Prepare(1);
    RunOnce(session.get(), &bound, 1);  // sets up what is set up once
    self.meet();
    const int64_t before = FakeCudaHostWaits();
    self.meet();
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst()).value();
    ASSERT_TRUE(run.Wait().ok());
    self.meet();
    EXPECT_EQ(FakeCudaHostWaits() - before, 0);
    self.meet();
    EXPECT_TRUE(session->Close().ok());
  });
  EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Fakes, CudaStreamOrderTest,
                         testing::Values(FakeTransport::kMessages, FakeTransport::kNccl,
                                         FakeTransport::kCudaIpc),
                         [](const auto& test) { return NameOf(test.param); });

}  // namespace
}  // namespace sluice::session_test
