// What a CUDA device does at once, and what comes after what: filling, a transport's work and
// draining, each while another one is held.
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda_rig.h"
#include "device/device.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "gmock/gmock.h"
#include "sluice/accelerator.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

constexpr int64_t kBytes = 4096;
constexpr Stretch kAll = {0, 0, kBytes};

class CudaLanesTest : public testing::Test {
 protected:
  CudaLanesTest() : device_(MakeCudaDevice()) {
    for (int i = 0; i < 6; ++i) {
      memory_.push_back(std::make_unique<KindMemory>(
          *device_, DeviceKind::kCuda,
          std::vector<std::byte>(static_cast<size_t>(kBytes), static_cast<std::byte>(i))));
    }
  }
  // Copies memory `from` to memory `to`.
  void Start(BatchStage stage, size_t from, size_t to, uint64_t cookie,
             bool in_stream_order = false) {
    const std::array<StridedCopy, 1> copies = {BytesCopy(kAll, *memory_[from], *memory_[to])};
    const absl::Status status = device_->Start(
        {.copies = copies, .cookie = cookie, .in_stream_order = in_stream_order, .stage = stage});
    ASSERT_TRUE(status.ok()) << status;
  }

  // The first byte of a memory.
  int ByteOf(size_t i) { return static_cast<int>(memory_[i]->Content()[0]); }

  // A transport's operation: it comes after what fills what it sends, and takes no time.
  void StartTransport(size_t from, size_t to) {
    const auto number = device_->HoldBackTransport().value();
    ASSERT_EQ(
        cudaMemcpyAsync(memory_[to]->data(), memory_[from]->data(), static_cast<size_t>(kBytes),
                        cudaMemcpyDeviceToDevice, device_->transport_stream()),
        cudaSuccess);
    device_->TransportHandedOut(number);
  }

  // The batches that end although none should: this asks often enough to see most of those that
  // are not held back. A batch that should end may need longer: PollUntil waits for it.
  std::vector<uint64_t> EndedSoon() {
    std::vector<uint64_t> ended;
    for (int i = 0; i < 200; ++i) {
      std::array<uint64_t, 64> cookies;
      const absl::StatusOr<int> count = device_->Poll(absl::MakeSpan(cookies));
      EXPECT_TRUE(count.ok()) << count.status();
      if (count.ok()) ended.insert(ended.end(), cookies.begin(), cookies.begin() + *count);
      std::this_thread::yield();
    }
    return ended;
  }

  std::unique_ptr<CudaDevice> device_;
  std::vector<std::unique_ptr<KindMemory>> memory_;
};

TEST_F(CudaLanesTest, BucketsAreFilledWhileATransportMovesOthers) {
  ASSERT_TRUE(device_->HoldBackTransport().ok());
  Door held(device_->transport_stream());
  Start(BatchStage::kFill, 1, 0, 1);
  std::vector<uint64_t> cookies;
  ASSERT_TRUE(PollUntil(*device_, 1, &cookies).ok());
  EXPECT_THAT(cookies, testing::ElementsAre(1));
}

TEST_F(CudaLanesTest, BucketsAreDrainedWhileOthersAreFilled) {
  Door held(device_->fill_stream());
  Start(BatchStage::kFill, 1, 0, 1);
  Start(BatchStage::kDrain, 2, 3, 2);
  std::vector<uint64_t> cookies;
  ASSERT_TRUE(PollUntil(*device_, 1, &cookies).ok());
  EXPECT_THAT(cookies, testing::ElementsAre(2));
  held.Open();
  ASSERT_TRUE(PollUntil(*device_, 1).ok());
}

TEST_F(CudaLanesTest, ADrainComesAfterWhatTheTransportBrought) {
  Door held(device_->transport_stream());
  StartTransport(1, 0);
  Start(BatchStage::kDrain, 0, 2, 1);
  Start(BatchStage::kFill, 3, 4, 2);
  std::vector<uint64_t> cookies;
  ASSERT_TRUE(PollUntil(*device_, 1, &cookies).ok());
  EXPECT_THAT(cookies, testing::ElementsAre(2));
  EXPECT_EQ(ByteOf(4), 3);
  EXPECT_THAT(EndedSoon(), testing::IsEmpty());
  held.Open();
  ASSERT_TRUE(PollUntil(*device_, 1).ok());
  EXPECT_EQ(ByteOf(2), 1);
}

TEST_F(CudaLanesTest, ADrainDoesNotWaitForWhatWasNotHandedOut) {
  StartTransport(1, 0);
  ASSERT_TRUE(device_->HoldBackTransport().ok());
  Door held(device_->transport_stream());
  Start(BatchStage::kDrain, 0, 2, 1);
  ASSERT_TRUE(device_->Start({.cookie = 2, .stage = BatchStage::kDrain}).ok());
  ASSERT_TRUE(PollUntil(*device_, 2).ok());
  EXPECT_EQ(ByteOf(2), 1);
}

TEST_F(CudaLanesTest, ATransportComesAfterWhatWasFilled) {
  Door held(device_->fill_stream());
  Start(BatchStage::kFill, 1, 0, 1, /*in_stream_order=*/true);
  ASSERT_TRUE(PollUntil(*device_, 1).ok());
  StartTransport(0, 2);
  // What is drained comes after that, too.
  Start(BatchStage::kDrain, 2, 3, 2);
  EXPECT_THAT(EndedSoon(), testing::IsEmpty());
  held.Open();
  ASSERT_TRUE(PollUntil(*device_, 1).ok());
  EXPECT_EQ(ByteOf(3), 1);
}

TEST_F(CudaLanesTest, OneOfNoKindKeepsTheOrderWithAllOthers) {
  for (const cudaStream_t stream :
       {device_->drain_stream(), device_->transport_stream(), device_->fill_stream()}) {
    Door held(stream);
    StartTransport(1, 0);
    Start(BatchStage::kDrain, 0, 2, 1);
    Start(BatchStage::kAny, 2, 3, 2);
    Start(BatchStage::kDrain, 3, 4, 3);
    Start(BatchStage::kFill, 3, 5, 4);
    EXPECT_THAT(EndedSoon(), testing::IsEmpty());
    held.Open();
    ASSERT_TRUE(PollUntil(*device_, 4).ok());
    EXPECT_EQ(ByteOf(4), 1);
    EXPECT_EQ(ByteOf(5), 1);
    for (const size_t i : {size_t{0}, size_t{2}, size_t{3}, size_t{4}, size_t{5}}) {
      ASSERT_EQ(cudaMemsetAsync(memory_[i]->data(), 9, static_cast<size_t>(kBytes), stream),
                cudaSuccess);
    }
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
}

TEST_F(CudaLanesTest, OneOfNothingEndsWhenAllStreamsHaveComeSoFar) {
  ASSERT_TRUE(device_->HoldBackTransport().ok());
  for (const cudaStream_t stream :
       {device_->drain_stream(), device_->transport_stream(), device_->fill_stream()}) {
    Door held(stream);
    ASSERT_TRUE(device_->Start({.cookie = 1}).ok());
    EXPECT_THAT(EndedSoon(), testing::IsEmpty());
    held.Open();
    ASSERT_TRUE(PollUntil(*device_, 1).ok());
  }
}

TEST_F(CudaLanesTest, FencesAreForAllStreams) {
  const std::unique_ptr<Fence> after = *device_->MakeFence();
  const std::unique_ptr<Fence> then = *device_->MakeFence();
  const ScopedStream caller;
  {
    Door held(caller.get());
    ASSERT_TRUE(after->Record({caller.get()}).ok());
    ASSERT_TRUE(device_->Start({.cookie = 1, .in_stream_order = true, .after = after.get()}).ok());
    ASSERT_TRUE(PollUntil(*device_, 1).ok());
    Start(BatchStage::kFill, 1, 0, 2);
    StartTransport(2, 3);
    Start(BatchStage::kDrain, 4, 5, 3);
    EXPECT_THAT(EndedSoon(), testing::IsEmpty());
    EXPECT_EQ(cudaStreamQuery(device_->transport_stream()), cudaErrorNotReady);
  }
  ASSERT_TRUE(PollUntil(*device_, 2).ok());
  for (const cudaStream_t stream :
       {device_->drain_stream(), device_->transport_stream(), device_->fill_stream()}) {
    Door held(stream);
    ASSERT_TRUE(device_->Start({.cookie = 4, .in_stream_order = true, .then = then.get()}).ok());
    ASSERT_TRUE(PollUntil(*device_, 1).ok());
    EXPECT_FALSE(*then->Passed());
    held.Open();
    ASSERT_TRUE(then->HoldBack({caller.get()}).ok());
    ASSERT_EQ(cudaStreamSynchronize(caller.get()), cudaSuccess);
    EXPECT_TRUE(*then->Passed());
  }
}

}  // namespace
}  // namespace sluice
