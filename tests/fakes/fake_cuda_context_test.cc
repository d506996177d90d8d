// Contexts of the fake CUDA runtime: who makes one where, and which calls want the right one. And
// its captures: what they forbid to which threads, and how they are lost.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

#include "cuda_runtime_api.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

constexpr int kNoContext = -1;
constexpr int kInvalidContext = 201;
constexpr int kNotFound = 500;

int FindRange(const void* pointer) {
  using GetRange = int (*)(unsigned long long*, size_t*, unsigned long long);
  return FindDriver<GetRange>("cuMemGetAddressRange")(nullptr, nullptr,
                                                      reinterpret_cast<uintptr_t>(pointer));
}

class FakeCudaContextTest : public testing::Test {
 protected:
  void SetUp() override { FakeCudaConfigure({.devices = 3}); }
};

TEST_F(FakeCudaContextTest, CallsMakeAContextWhereTheyTakeOne) {
  std::thread([] {
    int number = 0;
    cudaDeviceProp properties;
    char id[16];
    ASSERT_EQ(cudaGetDeviceCount(&number), cudaSuccess);
    ASSERT_EQ(cudaGetDevice(&number), cudaSuccess);
    EXPECT_EQ(number, 0);
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
    ASSERT_EQ(cudaDeviceGetPCIBusId(id, sizeof(id), 2), cudaSuccess);
    ASSERT_EQ(cudaDeviceCanAccessPeer(&number, 0, 1), cudaSuccess);
    EXPECT_EQ(FakeCudaCurrentContext(), kNoContext);
    for (int device = 0; device < 3; ++device) EXPECT_FALSE(FakeCudaHasContext(device));
    const ScopedStream stream;
    EXPECT_EQ(FakeCudaCurrentContext(), 0);
    EXPECT_TRUE(FakeCudaHasContext(0));
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(FakeCudaCurrentContext(), 1);
    EXPECT_TRUE(FakeCudaHasContext(1));
    // A peer needs one too.
    ASSERT_EQ(cudaDeviceEnablePeerAccess(2, 0), cudaSuccess);
    EXPECT_TRUE(FakeCudaHasContext(2));
  }).join();
  EXPECT_EQ(FakeCudaCurrentContext(), kNoContext);
}

TEST_F(FakeCudaContextTest, TheDriversStack) {
  const auto get = FindDriver<int (*)(int*, int)>("cuDeviceGet");
  const auto retain = FindDriver<int (*)(void**, int)>("cuDevicePrimaryCtxRetain");
  const auto push = FindDriver<int (*)(void*)>("cuCtxPushCurrent");
  const auto pop = FindDriver<int (*)(void**)>("cuCtxPopCurrent");
  const auto current = FindDriver<int (*)(void**)>("cuCtxGetCurrent");
  void* context = nullptr;
  void* seen = nullptr;
  int device = -1;
  EXPECT_EQ(get(&device, 3), cudaErrorInvalidDevice);
  ASSERT_EQ(get(&device, 2), 0);
  EXPECT_EQ(pop(&seen), kInvalidContext);
  EXPECT_EQ(push(nullptr), kInvalidContext);
  ASSERT_EQ(retain(&context, device), 0);
  EXPECT_TRUE(FakeCudaHasContext(2));
  ASSERT_EQ(current(&seen), 0);
  EXPECT_EQ(seen, nullptr);
  ASSERT_EQ(push(context), 0);
  ASSERT_EQ(current(&seen), 0);
  EXPECT_EQ(seen, context);
  int number = -1;
  ASSERT_EQ(cudaGetDevice(&number), cudaSuccess);
  EXPECT_EQ(number, 2);
  const CudaMemory memory(64);
  EXPECT_EQ(FindRange(memory.data()), 0);
  ASSERT_EQ(pop(&seen), 0);
  EXPECT_EQ(seen, context);
  EXPECT_EQ(FakeCudaCurrentContext(), kNoContext);
  EXPECT_FALSE(FakeCudaHasContext(0));
  EXPECT_EQ(FindRange(memory.data()), kInvalidContext);
}

TEST_F(FakeCudaContextTest, MemoryIsOfADevice) {
  const CudaMemory memory(64);
  EXPECT_EQ(FindRange(memory.data()), 0);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(FindRange(memory.data()), kNotFound);
  cudaIpcMemHandle_t handle;
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, memory.data()), cudaErrorInvalidValue);
  EXPECT_THAT(
      FakeCudaMisuse(),
      testing::ElementsAre(testing::HasSubstr("memory of device 0, while device 1 is current")));
}

class FakeCudaCaptureTest : public testing::Test {
 protected:
  void SetUp() override { FakeCudaConfigure({}); }

  // What the capture of a stream ends with after `meanwhile`.
  static cudaError_t Capture(cudaStreamCaptureMode mode, const std::function<void()>& meanwhile) {
    const ScopedStream stream;
    EXPECT_EQ(cudaStreamBeginCapture(stream.get(), mode), cudaSuccess);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    EXPECT_EQ(cudaStreamIsCapturing(stream.get(), &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    meanwhile();
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream.get(), &graph);
    EXPECT_EQ(graph != nullptr, ended == cudaSuccess);
    EXPECT_EQ(cudaStreamIsCapturing(stream.get(), &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    return ended;
  }

  // A query on another thread, in this mode, of an event that has nothing to do with the capture.
  static void Query(cudaStreamCaptureMode mode, cudaError_t expected) {
    std::thread([=] {
      const CudaEvent event;
      cudaStreamCaptureMode before = mode;
      EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&before), cudaSuccess);
      EXPECT_EQ(before, cudaStreamCaptureModeGlobal);
      EXPECT_EQ(cudaEventQuery(event.get()), expected);
    }).join();
  }
};

TEST_F(FakeCudaCaptureTest, OtherThreadsMayNotQuery) {
  EXPECT_EQ(Capture(cudaStreamCaptureModeGlobal,
                    [] { Query(cudaStreamCaptureModeGlobal, cudaErrorStreamCaptureUnsupported); }),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(Capture(cudaStreamCaptureModeThreadLocal,
                    [] { Query(cudaStreamCaptureModeGlobal, cudaSuccess); }),
            cudaSuccess);
}

TEST_F(FakeCudaCaptureTest, RelaxedThreadsMay) {
  for (const auto mode : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    EXPECT_EQ(Capture(cudaStreamCaptureModeGlobal, [mode] { Query(mode, cudaSuccess); }),
              cudaSuccess);
  }
}

TEST_F(FakeCudaCaptureTest, TheThreadThatCapturesMayNotAllocate) {
  void* memory = nullptr;
  EXPECT_EQ(Capture(cudaStreamCaptureModeThreadLocal,
                    [&] { EXPECT_EQ(cudaMalloc(&memory, 8), cudaErrorStreamCaptureUnsupported); }),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(Capture(cudaStreamCaptureModeRelaxed,
                    [&] { EXPECT_EQ(cudaMalloc(&memory, 8), cudaSuccess); }),
            cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

// As driver 580 does it on an H200.
TEST_F(FakeCudaCaptureTest, TheQuestionForItsDeviceEndsAStreamsCapture) {
  const ScopedStream stream;
  ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeRelaxed), cudaSuccess);
  int device = -1;
  EXPECT_EQ(cudaStreamGetDevice(stream.get(), &device), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(device, -1);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(FakeCudaCaptureTest, ACapturedStreamRunsNothingAndWaitsForNothingOutside) {
  const ScopedStream stream;
  const CudaEvent event;
  bool ran = false;
  ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(FakeCudaEnqueue(stream.get(), [&] { ran = true; }), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream.get(), event.get()), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaStreamQuery(stream.get()), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace sluice
