// The CUDA device when calls fail, when memory runs out, and when the stream is held up: over the
// fake runtime, which also counts what the device calls.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "cuda_runtime_api.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda_rig.h"
#include "device/device.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "oracle/sampled.h"
#include "sluice/accelerator.h"
#include "sluice/cuda.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

using testing::HasSubstr;

class CudaFaultsTest : public testing::Test {
 protected:
  void SetUp() override { FakeCudaConfigure({}); }
};

constexpr int64_t kBytes = 5000;
constexpr Stretch kAll = {0, 0, kBytes};

std::array<StridedCopy, 1> Whole(KindMemory& src, KindMemory& dst) {
  return {BytesCopy(kAll, src, dst)};
}

std::vector<std::byte> Bytes(int value) {
  return std::vector<std::byte>(kBytes, static_cast<std::byte>(value));
}

int PollOnce(Device& device) {
  std::array<uint64_t, 64> cookies;
  return device.Poll(absl::MakeSpan(cookies)).value();
}

TEST_F(CudaFaultsTest, InStreamOrderIsAsSoonAsAllIsOnTheStream) {
  const std::unique_ptr<CudaDevice> device = MakeCudaDevice();
  KindMemory a(*device, DeviceKind::kCuda, Bytes(1));
  KindMemory b(*device, DeviceKind::kCuda, Bytes(2));
  KindMemory c(*device, DeviceKind::kCudaHost, Bytes(3));
  KindMemory d(*device, DeviceKind::kCpu, Bytes(4));
  const auto first = Whole(a, b);
  const auto second = Whole(b, c);
  const auto third = Whole(b, d);
  Door held(device->fill_stream());
  ASSERT_TRUE(device->Start({first, 1}).ok());
  ASSERT_TRUE(device->Start({second, 2, {}, {}, true}).ok());
  ASSERT_TRUE(device->Start({third, 3, {}, {}, true}).ok());
  std::array<uint64_t, 64> cookies;
  // Only the second is: the first must be done, and the third needs the host for its last part.
  ASSERT_EQ(device->Poll(absl::MakeSpan(cookies)).value(), 1);
  EXPECT_EQ(cookies[0], 2u);
  EXPECT_EQ(PollOnce(*device), 0);
  EXPECT_TRUE(d.Content() == Bytes(4));
  held.Open();
  ASSERT_TRUE(PollUntil(*device, 2).ok());
  EXPECT_TRUE(c.Content() == Bytes(1));
  EXPECT_TRUE(d.Content() == Bytes(1));
}

TEST_F(CudaFaultsTest, TheHostTouchesPinnedMemoryWhenTheStreamIsDoneWithIt) {
  const std::unique_ptr<CudaDevice> device = MakeCudaDevice();
  KindMemory a(*device, DeviceKind::kCuda, Bytes(1));
  KindMemory b(*device, DeviceKind::kCudaHost, Bytes(2));
  KindMemory c(*device, DeviceKind::kCpu, Bytes(3));
  KindMemory d(*device, DeviceKind::kCpu, Bytes(4));
  const auto on_gpu = Whole(a, b);
  const auto on_host = Whole(b, c);
  const auto host_only = Whole(c, d);
  Door held(device->fill_stream());
  ASSERT_TRUE(device->Start({on_gpu, 1}).ok());
  // Memory that the stream does not know of need not wait for it.
  ASSERT_TRUE(device->Start({host_only, 2}).ok());
  EXPECT_TRUE(d.Content() == Bytes(3));
  ASSERT_TRUE(device->Start({on_host, 3}).ok());
  ASSERT_TRUE(device->Start({host_only, 4}).ok());
  EXPECT_EQ(PollOnce(*device), 1);
  EXPECT_TRUE(c.Content() == Bytes(3));
  held.Open();
  ASSERT_TRUE(PollUntil(*device, 3).ok());
  EXPECT_TRUE(c.Content() == Bytes(1));
  EXPECT_TRUE(d.Content() == Bytes(1));
}

// What a caller's stream has not done yet is not done for the host, either.
TEST_F(CudaFaultsTest, TheHostComesAfterAFence) {
  const std::unique_ptr<CudaDevice> device = MakeCudaDevice();
  const ScopedStream caller;
  KindMemory a(*device, DeviceKind::kCpu, Bytes(1));
  KindMemory b(*device, DeviceKind::kCpu, Bytes(2));
  const auto copies = Whole(a, b);
  const std::unique_ptr<Fence> fence = *device->MakeFence();
  {
    Door held(caller.get());
    ASSERT_TRUE(fence->Record({caller.get()}).ok());
    CopyBatch batch = {copies, 1};
    batch.after = fence.get();
    ASSERT_TRUE(device->Start(batch).ok());
    ASSERT_TRUE(device->Start({copies, 2}).ok());
    EXPECT_EQ(PollOnce(*device), 0);
    EXPECT_FALSE(*fence->Passed());
    EXPECT_TRUE(b.Content() == Bytes(2));
  }
  ASSERT_TRUE(PollUntil(*device, 2).ok());
  EXPECT_TRUE(b.Content() == Bytes(1));
  EXPECT_EQ(cudaStreamSynchronize(caller.get()), cudaSuccess);
}

// A stream may wait for an event of a process that has died. Freeing memory would wait for it.
TEST_F(CudaFaultsTest, TheEndDoesNotWaitForWhatMayNeverCome) {
  const ScopedStream dead;
  {
    Door held(dead.get());
    std::thread ends([&dead] {
      const CudaDeviceOptions options = {.farewell = std::chrono::milliseconds(10)};
      std::unique_ptr<CudaDevice> device = MakeCudaDevice(options);
      KindMemory staging(*device, DeviceKind::kCudaHost, Bytes(1));
      KindMemory buffer(*device, DeviceKind::kCuda, Bytes(2));
      const auto copies = Whole(staging, buffer);
      const std::unique_ptr<Fence> fence = *device->MakeFence();
      EXPECT_TRUE(fence->Record({dead.get()}).ok());
      CopyBatch batch = {copies, 1};
      batch.after = fence.get();
      EXPECT_TRUE(device->Start(batch).ok());
      device.reset();
    });
    ends.join();  // while the stream still stands
    EXPECT_EQ(cudaStreamQuery(dead.get()), cudaErrorNotReady);
  }
  EXPECT_EQ(cudaStreamSynchronize(dead.get()), cudaSuccess);
  // The next device frees what was left, as soon as the GPU has got past it.
  const std::unique_ptr<CudaDevice> next = MakeCudaDevice();
  while (FakeCudaCalls("cudaHostUnregister") < 2) MakeCudaDevice();
}

// What counts as done in stream order may still touch memory when the device fails.
TEST_F(CudaFaultsTest, AFailedDeviceSaysWhenItTouchesNothingMore) {
  const std::unique_ptr<CudaDevice> device = MakeCudaDevice();
  KindMemory a(*device, DeviceKind::kCuda, Bytes(1));
  KindMemory b(*device, DeviceKind::kCuda, Bytes(2));
  const auto copies = Whole(a, b);
  Door held(device->fill_stream());
  ASSERT_TRUE(device->Start({copies, 1, {}, {}, true}).ok());
  ASSERT_EQ(PollOnce(*device), 1);
  FakeCudaFailAt("cudaEventRecord", 1, cudaErrorUnknown);
  ASSERT_TRUE(device->Start({{}, 2}).ok());
  std::array<uint64_t, 64> cookies;
  EXPECT_FALSE(device->Poll(absl::MakeSpan(cookies)).ok());
  EXPECT_FALSE(device->Start({copies, 3}).ok());
  ASSERT_TRUE(device->Start({{}, 4}).ok());
  EXPECT_EQ(PollOnce(*device), 0);
  held.Open();
  EXPECT_TRUE(PollUntil(*device, 2).ok());
  EXPECT_TRUE(b.Content() == Bytes(1));
  // A transport still may: a peer that comes late reads memory until its stream says so.
  Door reads(device->transport_stream());
  ASSERT_TRUE(device->Start({{}, 5}).ok());
  ASSERT_EQ(PollOnce(*device), 0);
  reads.Open();
  EXPECT_TRUE(PollUntil(*device, 1).ok());
}

// Everything a device does, with one of all kinds of steps.
absl::Status DoEverything() {
  const CudaDeviceOptions options = {.record_spans = true, .bounce_bytes = 2048};
  absl::StatusOr<std::unique_ptr<CudaDevice>> made = CudaDevice::Create(options);
  if (!made.ok()) return made.status();
  CudaDevice& device = **made;
  absl::StatusOr<DeviceMemory> gpu = device.AllocateBuffer(kBytes);
  if (!gpu.ok()) return gpu.status();
  absl::StatusOr<DeviceMemory> pinned = device.AllocateStaging(kBytes);
  if (!pinned.ok()) return pinned.status();
  absl::StatusOr<std::unique_ptr<Fence>> fence = device.MakeFence();
  if (!fence.ok()) return fence.status();
  std::vector<std::byte> in = Bytes(7);
  std::vector<std::byte> out = Bytes(0);
  StridedCopy copy;
  copy.runs[0] = absl::MakeConstSpan(&kAll, 1);
  copy.src_strides[0] = copy.dst_strides[0] = 1;
  copy.end = kBytes;
  const auto between = [&](const std::byte* src, DeviceKind src_kind, std::byte* dst,
                           DeviceKind dst_kind) {
    copy.src = src, copy.src_kind = src_kind;
    copy.dst = dst, copy.dst_kind = dst_kind;
    return std::array<StridedCopy, 1>{copy};
  };
  const auto to_gpu = between(in.data(), DeviceKind::kCpu, gpu->data(), DeviceKind::kCuda);
  const auto to_pinned =
      between(gpu->data(), DeviceKind::kCuda, pinned->data(), DeviceKind::kCudaHost);
  const auto to_host = between(gpu->data(), DeviceKind::kCuda, out.data(), DeviceKind::kCpu);
  const auto on_host = between(pinned->data(), DeviceKind::kCudaHost, in.data(), DeviceKind::kCpu);
  const std::array<Reduction, 1> sum = {{{ReduceOp::kSum, DType::kU8, pinned->data(), gpu->data(),
                                          kBytes, 1, DeviceKind::kCudaHost, DeviceKind::kCuda}}};
  CopyBatch batches[] = {{to_gpu, 1}, {to_pinned, 2}, {{}, 3, sum}, {to_host, 4}, {on_host, 5}};
  batches[1].then = fence->get();
  batches[3].after = fence->get();
  absl::Status first;
  size_t started = 0;
  for (const CopyBatch& batch : batches) {
    first = device.Start(batch);
    if (!first.ok()) break;
    ++started;
  }
  std::vector<uint64_t> cookies;
  absl::Status polled = PollUntil(device, started, &cookies);
  if (!polled.ok()) {
    // Once only: then what was started comes back.
    const absl::Status rest = PollUntil(device, started - cookies.size(), &cookies);
    EXPECT_TRUE(rest.ok()) << "after " << polled << ": " << rest;
    EXPECT_FALSE(device.Start({to_gpu, 6}).ok());
    return polled;
  }
  if (!first.ok()) return first;
  (void)device.TakeSpans();
  const std::vector<std::byte> expected = Bytes(14);
  EXPECT_TRUE(out == expected);
  return absl::OkStatus();
}

// Under a sanitizer each third call only, and other ones with each error.
TEST_F(CudaFaultsTest, EveryCallMayFail) {
  constexpr int kStep = oracle::kSanitized ? 3 : 1;
  int first = 1;
  for (const cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorLaunchFailure}) {
    int failed = 0;
    for (int call = first;; call += kStep) {
      FakeCudaFailAt(call, error);
      const absl::Status status = DoEverything();
      const bool came_to_pass = FakeCudaFailures() > 0;
      for (const std::string& what : FakeCudaCheckClean()) {
        ADD_FAILURE() << "call " << call << ": " << what;
      }
      if (!came_to_pass) {
        EXPECT_TRUE(status.ok()) << status;
        break;
      }
      if (!status.ok()) {
        ++failed;
        EXPECT_THAT(status.message(), HasSubstr(cudaGetErrorName(error))) << "call " << call;
      }
    }
    // The others are those of the end, which nobody can be told of.
    EXPECT_GT(failed, 100 / kStep);
    ++first;
  }
}

TEST_F(CudaFaultsTest, EveryOperationOfTheStreamMayFail) {
  for (int operation = 1;; ++operation) {
    FakeCudaFailOperation(operation, cudaErrorIllegalAddress);
    const absl::Status status = DoEverything();
    const bool came_to_pass = FakeCudaFailures() > 0;
    for (const std::string& what : FakeCudaCheckClean()) {
      ADD_FAILURE() << "operation " << operation << ": " << what;
    }
    if (!came_to_pass) {
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_GT(operation, 10);
      break;
    }
    EXPECT_FALSE(status.ok()) << "operation " << operation;
  }
}

TEST_F(CudaFaultsTest, NoMemoryIsToldWithTheBreakdown) {
  FakeCudaConfigure({.memory_bytes = size_t{64} << 20});
  const std::unique_ptr<CudaDevice> device = MakeCudaDevice();
  const absl::StatusOr<DeviceMemory> memory = device->AllocateBuffer(size_t{100} << 20);
  ASSERT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(memory.status().message()),
      testing::MatchesRegex("cannot allocate 104857600 bytes of buffer memory on cuda:0, "
                            "of which [0-9]+ bytes of 67108864 are free: cudaMalloc failed: "
                            ".*cudaErrorMemoryAllocation.*"));
}

TEST_F(CudaFaultsTest, BatchesAllocateNothingAndWaitForNothing) {
  const CudaDeviceOptions options = {.bounce_bytes = 2048};
  const std::unique_ptr<CudaDevice> device = MakeCudaDevice(options);
  KindMemory a(*device, DeviceKind::kCuda, Bytes(1));
  KindMemory b(*device, DeviceKind::kCudaHost, Bytes(2));
  KindMemory c(*device, DeviceKind::kCpu, Bytes(3));
  const std::array<StridedCopy, 3> copies = {BytesCopy(kAll, a, b), BytesCopy(kAll, a, c),
                                             BytesCopy(kAll, c, a)};
  const auto count = [] {
    std::vector<int64_t> counts = {FakeCudaHostWaits()};
    for (const char* function :
         {"cudaMalloc", "cudaHostRegister", "cudaEventCreateWithFlags", "cudaEventSynchronize",
          "cudaStreamSynchronize", "cudaStreamCreateWithFlags", "cudaFree"}) {
      counts.push_back(FakeCudaCalls(function));
    }
    return counts;
  };
  const std::vector<int64_t> before = count();
  for (uint64_t i = 0; i < 300; ++i) {
    ASSERT_TRUE(device->Start({absl::MakeConstSpan(copies).subspan(i % 3, 1), i}).ok());
    if (i % 10 == 9) {
      ASSERT_TRUE(PollUntil(*device, 10).ok());
    }
  }
  EXPECT_EQ(count(), before);
}

TEST_F(CudaFaultsTest, TheCallersDeviceStaysCurrent) {
  FakeCudaConfigure({.devices = 2});
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  const CudaDeviceOptions options = {.ordinal = 1};
  const std::unique_ptr<CudaDevice> device = MakeCudaDevice(options);
  KindMemory a(*device, DeviceKind::kCuda, Bytes(1));
  KindMemory b(*device, DeviceKind::kCuda, Bytes(2));
  const auto copies = Whole(a, b);
  ASSERT_TRUE(device->Start({copies, 1}).ok());
  // On another thread, whose current device is another.
  std::thread([&] { ASSERT_TRUE(PollUntil(*device, 1).ok()); }).join();
  int current = -1;
  ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
  EXPECT_TRUE(b.Content() == Bytes(1));
}

TEST_F(CudaFaultsTest, KernelsThatWereNotBuiltForTheDevice) {
  FakeCudaConfigure({.compute_capability = 75});
  const absl::Status status = CudaDevice::Create({}).status();
  EXPECT_THAT(status,
              Fails(absl::StatusCode::kFailedPrecondition,
                    testing::AllOf(HasSubstr("built for sm_"), HasSubstr("cuda:0 is sm_75"))));
}

TEST_F(CudaFaultsTest, TooManyEvents) {
  FakeCudaConfigure({.events_max = 10});
  EXPECT_EQ(CudaDevice::Create({}).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(CudaFaultsTest, AcceleratorsSayWhyThereIsNone) {
  const auto refusal = [](const FakeCudaConfig& config, absl::optional<int> ordinal) {
    FakeCudaConfigure(config);
    absl::Status status = MakeCudaAccelerator({.ordinal = ordinal}).status();
    FakeCudaCheckClean();
    return status;
  };
  absl::Status status = refusal({.driver_version = 0}, {});
  EXPECT_THAT(status, Fails(absl::StatusCode::kFailedPrecondition, "no CUDA driver"));
  status = refusal({.driver_version = 12040}, {});
  EXPECT_THAT(status, Fails(absl::StatusCode::kFailedPrecondition,
                            testing::AllOf(HasSubstr("for CUDA 12.4 at most"),
                                           HasSubstr("built for CUDA 13.0"))));
  status = refusal({.devices = 0}, {});
  EXPECT_THAT(status, Fails(absl::StatusCode::kFailedPrecondition, "there is no CUDA device here"));
  status = refusal({.devices = 2}, 2);
  EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument,
                            "no cuda:2 here: this process sees 2 devices"));
  status = refusal({.devices = 2}, -1);
  EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, "no cuda:-1 here"));
  EXPECT_TRUE(refusal({}, {}).ok());
}

TEST_F(CudaFaultsTest, AcceleratorsCheckMemoryAndStreams) {
  FakeCudaConfigure({.devices = 2});
  const std::shared_ptr<Accelerator> accelerator = *MakeCudaAccelerator({.ordinal = 1});
  EXPECT_EQ(accelerator->ordinal(), 1);
  EXPECT_THAT(accelerator->description(), HasSubstr("cuda:1 ("));
  const std::unique_ptr<Device> own = *accelerator->OpenDevice();
  const std::unique_ptr<CudaDevice> other = MakeCudaDevice();
  KindMemory gpu(*own, DeviceKind::kCuda, Bytes(1));
  KindMemory pinned(*own, DeviceKind::kCudaHost, Bytes(1));
  KindMemory host(*own, DeviceKind::kCpu, Bytes(1));
  KindMemory elsewhere(*other, DeviceKind::kCuda, Bytes(1));
  EXPECT_TRUE(accelerator->CheckMemory(gpu.data(), DeviceKind::kCuda).ok());
  EXPECT_TRUE(accelerator->CheckMemory(pinned.data(), DeviceKind::kCudaHost).ok());
  EXPECT_TRUE(accelerator->CheckMemory(pinned.data(), DeviceKind::kCpu).ok());
  EXPECT_TRUE(accelerator->CheckMemory(host.data(), DeviceKind::kCpu).ok());
  const auto refusal = [&](KindMemory& memory, DeviceKind kind) {
    const absl::Status status = accelerator->CheckMemory(memory.data(), kind);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(host, DeviceKind::kCuda), HasSubstr("of cuda:1, but it is host memory"));
  EXPECT_THAT(refusal(pinned, DeviceKind::kCuda), HasSubstr("it is pinned host memory"));
  EXPECT_THAT(refusal(elsewhere, DeviceKind::kCuda), HasSubstr("it is memory of cuda:0"));
  EXPECT_THAT(refusal(gpu, DeviceKind::kCpu), HasSubstr("it is memory of cuda:1"));
  EXPECT_THAT(refusal(host, DeviceKind::kCudaHost), HasSubstr("said to be pinned"));
  EXPECT_TRUE(accelerator->CheckStream(ToHandle(nullptr)).ok());
  const absl::Status wrong = accelerator->CheckStream(ToHandle(other->fill_stream()));
  EXPECT_THAT(wrong, Fails(absl::StatusCode::kInvalidArgument,
                           "of cuda:0, but work is to be done on cuda:1"));
  const absl::Status unclear = accelerator->CheckStream(ToHandle(cudaStreamPerThread));
  EXPECT_THAT(unclear, Fails(absl::StatusCode::kInvalidArgument, "cudaStreamPerThread"));
}

}  // namespace
}  // namespace sluice
