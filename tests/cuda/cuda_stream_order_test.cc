// Runs that take part in a stream of the caller's: they come after what it held, and before what it
// gets later, without a visit of the host. And what a session does on a GPU while a group of NCCL
// waits for its receiver.
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

constexpr int64_t kElements = 64 << 10;

// From each rank to the next one, with bytes that are strided at neither end.
TransferSpec Shift(int size) { return Ring(size, kElements / 1024); }

class CudaStreamOrderTest : public testing::TestWithParam<FakeTransport> {};

// A stream, and device memory that its kernels fill and read.
class Producer {
 public:
  ~Producer() { EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess); }

  StreamHandle stream() const { return {stream_.get()}; }
  void* src() const { return src_.data(); }
  void* dst() const { return dst_.data(); }

  // A kernel that takes its time, and then sets all of the source.
  void Produce(double value) {
    auto* const data = static_cast<double*>(FakeCudaHostPointer(src(), kBytes));
    Launch(src(), [data, value] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      for (int64_t i = 0; i < kElements; ++i) data[i] = value;
    });
  }
  // One that counts what is not `value` in the target, and spoils it.
  void Consume(double value, int64_t* wrong) {
    auto* const data = static_cast<double*>(FakeCudaHostPointer(dst(), kBytes));
    Launch(dst(), [data, value, wrong] {
      for (int64_t i = 0; i < kElements; ++i) *wrong += data[i] != value ? 1 : 0;
      for (int64_t i = 0; i < kElements; ++i) data[i] = -1;
    });
  }

 private:
  static constexpr size_t kBytes = kElements * sizeof(double);

  void Launch(void* data, std::function<void()> kernel) {
    EXPECT_EQ(FakeCudaEnqueue(stream_.get(), std::move(kernel), {{data, kBytes}}), cudaSuccess);
  }

  const ScopedStream stream_;
  const CudaMemory src_{kBytes};
  const CudaMemory dst_{kBytes};
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
      ASSERT_EQ(cudaSetDevice(self.rank), cudaSuccess);
      Producer producer;
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
}

INSTANTIATE_TEST_SUITE_P(Fakes, CudaStreamOrderTest, FakeTransports(), NameOfParam);

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

// All tensors, column-major, so that they have to be packed and unpacked.
std::vector<TensorView> ViewsOf(const CudaMemory& block, int device) {
  std::vector<TensorView> views;
  for (size_t i = 0; i < kTensors; ++i) {
    views.push_back(DenseView(block.data(), {kRows, kColumns}, DType::kF32));
    views.back().byte_offset = static_cast<int64_t>(i * kBytes);
    views.back().strides = {1, kRows};
    views.back().device = DeviceKind::kCuda;
    views.back().device_ordinal = device;
  }
  return views;
}

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
      const FilledMemory block(kTensors * kBytes, 1 + self.rank);
      const std::vector<TensorView> own = ViewsOf(block, self.rank);
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
      EXPECT_TRUE(block.IsAll(1));
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
