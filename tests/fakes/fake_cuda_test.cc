// The fake CUDA runtime does what the vendor's does, in its order, and says what was done wrong.
#include "fakes/fake_cuda.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "cuda_runtime.h"
#include "fakes/fake_cuda_rig.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

using testing::ElementsAre;

class FakeCudaTest : public testing::Test {
 protected:
  void SetUp() override { FakeCudaConfigure({}); }
  void TearDown() override { cudaSetDevice(0); }
};

std::vector<int> Counting(size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 7);
  return values;
}

std::vector<int> Fetch(const void* device, size_t count) {
  std::vector<int> values(count);
  EXPECT_EQ(cudaMemcpy(values.data(), device, count * sizeof(int), cudaMemcpyDefault), cudaSuccess);
  return values;
}

TEST_F(FakeCudaTest, RowsAreCopiedWithTheirPitches) {
  const std::vector<int> values = Counting(12);
  const CudaMemory memory(12 * sizeof(int));
  const ScopedStream stream;
  ASSERT_EQ(cudaMemsetAsync(memory.data(), 0, memory.bytes(), stream.get()), cudaSuccess);
  // The first two of each four go to the first two of each three.
  ASSERT_EQ(cudaMemcpy2DAsync(memory.data(), 12, values.data(), 16, 8, 3, cudaMemcpyDefault,
                              stream.get()),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_THAT(Fetch(memory.data(), 9), ElementsAre(7, 8, 0, 11, 12, 0, 15, 16, 0));
  EXPECT_EQ(
      cudaMemcpy2DAsync(memory.data(), 4, values.data(), 16, 8, 3, cudaMemcpyDefault, stream.get()),
      cudaErrorInvalidPitchValue);
}

TEST_F(FakeCudaTest, TheHostCannotTouchDeviceMemory) {
  const CudaMemory memory(64);
  EXPECT_DEATH(*static_cast<volatile char*>(memory.data()) = 1, "");
}

TEST_F(FakeCudaTest, StreamsRunByThemselvesAndInOrder) {
  const ScopedStream stream;
  std::vector<int> order;
  Door door(stream.get());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(FakeCudaEnqueue(stream.get(), [&order, i] { order.push_back(i); }), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamQuery(stream.get()), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  door.Open();
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  EXPECT_EQ(cudaStreamQuery(stream.get()), cudaSuccess);
}

TEST_F(FakeCudaTest, AWaitIsForTheRecordBeforeIt) {
  const ScopedStream first;
  const ScopedStream second;
  const CudaEvent event;
  std::atomic<int> value = 0;
  // Never recorded: no wait.
  EXPECT_EQ(cudaEventQuery(event.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second.get(), event.get()), cudaSuccess);
  Door door(first.get());
  ASSERT_EQ(FakeCudaEnqueue(first.get(), [&] { value = 1; }), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event.get(), first.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second.get(), event.get()), cudaSuccess);
  int seen = 0;
  ASSERT_EQ(FakeCudaEnqueue(second.get(), [&] { seen = value; }), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event.get()), cudaErrorNotReady);
  // A later record changes nothing for the wait.
  const ScopedStream third;
  Door other_door(third.get());
  ASSERT_EQ(cudaEventRecord(event.get(), third.get()), cudaSuccess);
  door.Open();
  ASSERT_EQ(cudaStreamSynchronize(second.get()), cudaSuccess);
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(cudaEventQuery(event.get()), cudaErrorNotReady);
  other_door.Open();
  ASSERT_EQ(cudaEventSynchronize(event.get()), cudaSuccess);
}

TEST_F(FakeCudaTest, PinnedMemoryIsReadWhenTheCopyRuns) {
  std::vector<int> host = {1, 2, 3, 4};
  ASSERT_EQ(cudaHostRegister(host.data(), 16, cudaHostRegisterDefault), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(host.data() + 2, 16, 0), cudaErrorHostMemoryAlreadyRegistered);
  const CudaMemory memory(16);
  const ScopedStream stream;
  Door door(stream.get());
  ASSERT_EQ(cudaMemcpyAsync(memory.data(), host.data(), 16, cudaMemcpyHostToDevice, stream.get()),
            cudaSuccess);
  host[0] = 9;  // too late for pageable memory
  EXPECT_EQ(FakeCudaHostWaits(), 0);
  door.Open();
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_THAT(Fetch(memory.data(), 4), ElementsAre(9, 2, 3, 4));
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaSuccess);
}

TEST_F(FakeCudaTest, PageableMemoryIsReadAtOnceAndWrittenBeforeTheReturn) {
  std::vector<int> host = {1, 2, 3, 4};
  const CudaMemory memory(16);
  const ScopedStream stream;
  {
    Door door(stream.get());
    ASSERT_EQ(cudaMemcpyAsync(memory.data(), host.data(), 16, cudaMemcpyHostToDevice, stream.get()),
              cudaSuccess);
    host[0] = 9;
  }
  std::vector<int> back(4);
  ASSERT_EQ(cudaMemcpyAsync(back.data(), memory.data(), 16, cudaMemcpyDeviceToHost, stream.get()),
            cudaSuccess);
  EXPECT_THAT(back, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(FakeCudaHostWaits(), 2);
}

TEST_F(FakeCudaTest, TheNullStreamKeepsTheOrderOfBlockingStreams) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault), cudaSuccess);
  std::vector<int> order;
  {
    Door door(blocking);
    ASSERT_EQ(FakeCudaEnqueue(blocking, [&] { order.push_back(1); }), cudaSuccess);
    ASSERT_EQ(FakeCudaEnqueue(nullptr, [&] { order.push_back(2); }), cudaSuccess);
    ASSERT_EQ(FakeCudaEnqueue(blocking, [&] { order.push_back(3); }), cudaSuccess);
    // Another stream does not wait for it.
    const ScopedStream free_stream;
    ASSERT_EQ(FakeCudaEnqueue(free_stream.get(), [] {}), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(free_stream.get()), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  }
  ASSERT_EQ(cudaStreamSynchronize(blocking), cudaSuccess);
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

TEST_F(FakeCudaTest, EventsTellTime) {
  const ScopedStream stream;
  const CudaEvent start(cudaEventDefault);
  const CudaEvent end(cudaEventDefault);
  float ms = -1;
  EXPECT_EQ(cudaEventElapsedTime(&ms, start.get(), end.get()), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaEventRecord(start.get(), stream.get()), cudaSuccess);
  ASSERT_EQ(FakeCudaEnqueue(stream.get(),
                            [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }),
            cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end.get(), stream.get()), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(end.get()), cudaSuccess);
  ASSERT_EQ(cudaEventElapsedTime(&ms, start.get(), end.get()), cudaSuccess);
  EXPECT_GE(ms, 2.0F);
}

TEST_F(FakeCudaTest, MemoryIsLimited) {
  FakeCudaConfigure({.memory_bytes = 4 << 20});
  const CudaMemory most(4000 << 10);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 100 << 10), cudaErrorMemoryAllocation);
  EXPECT_EQ(more, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  size_t free = 0;
  size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, size_t{96} << 10);
  EXPECT_EQ(total, size_t{4} << 20);
}

TEST_F(FakeCudaTest, WithoutDeviceOrDriverEveryCallSaysSo) {
  int count = -1;
  FakeCudaConfigure({.devices = 0});
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  for (const int version : {0, 12080}) {
    FakeCudaConfigure({.driver_version = version});
    EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, 0), cudaErrorInsufficientDriver);
    int driver = -1;
    EXPECT_EQ(cudaDriverGetVersion(&driver), cudaSuccess);
    EXPECT_EQ(driver, version);
  }
}

TEST_F(FakeCudaTest, DevicesAreThreadsOwnAndHaveTheirOwnStreams) {
  FakeCudaConfigure({.devices = 2});
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  std::thread([] {
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
  }).join();
  const ScopedStream stream;
  int device = -1;
  ASSERT_EQ(cudaStreamGetDevice(stream.get(), &device), cudaSuccess);
  EXPECT_EQ(device, 1);
  const CudaMemory memory(64);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  const CudaEvent event;
  EXPECT_EQ(cudaEventRecord(event.get(), stream.get()), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(FakeCudaEnqueue(stream.get(), [] {}), cudaErrorInvalidResourceHandle);
  char first[16] = {};
  char second[16] = {};
  ASSERT_EQ(cudaDeviceGetPCIBusId(first, sizeof(first), 0), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetPCIBusId(second, sizeof(second), 1), cudaSuccess);
  EXPECT_STRNE(first, second);
  // A kernel needs access to another device's memory; a copy does not.
  const ScopedStream here;
  const auto touch = [&] { return FakeCudaEnqueue(here.get(), [] {}, {{memory.data(), 64}}); };
  EXPECT_EQ(touch(), cudaErrorIllegalAddress);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(testing::HasSubstr("has no access")));
  int can = 0;
  ASSERT_EQ(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
  EXPECT_EQ(can, 1);
  ASSERT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(touch(), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(here.get()), cudaSuccess);
}

TEST_F(FakeCudaTest, PointersAreKnown) {
  const CudaMemory memory(1000);
  std::vector<char> host(100);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, host.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory.At(999)), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  ASSERT_EQ(cudaHostRegister(host.data(), 100, 0), cudaSuccess);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, host.data() + 5), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, host.data() + 5);
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaSuccess);

  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &function, 12000, 0, &result),
            cudaSuccess);
  ASSERT_EQ(result, cudaDriverEntryPointSuccess);
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuElse", &function, 12000, 0, &result), cudaSuccess);
  EXPECT_EQ(result, cudaDriverEntryPointSymbolNotFound);
}

TEST_F(FakeCudaTest, ErrorsOfTheDeviceStay) {
  const ScopedStream stream;
  FakeCudaFailOperation(2, cudaErrorIllegalAddress);
  int ran = 0;
  const auto run = [&] { return FakeCudaEnqueue(stream.get(), [&] { ++ran; }); };
  {
    const Door door(stream.get());
    EXPECT_EQ(run(), cudaSuccess);
    EXPECT_EQ(run(), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaErrorIllegalAddress);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(run(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(FakeCudaFailures(), 1);
}

TEST_F(FakeCudaTest, CallsAreCountedAndFailWhenTheyAreTo) {
  const CudaMemory memory(64);
  const ScopedStream stream;
  EXPECT_EQ(FakeCudaCalls("cudaMalloc"), 1);
  EXPECT_EQ(FakeCudaAllCalls(), 2);
  FakeCudaFailAt("cudaMemsetAsync", 2, cudaErrorLaunchFailure);
  const auto set = [&] { return cudaMemsetAsync(memory.data(), 1, 64, stream.get()); };
  EXPECT_EQ(set(), cudaSuccess);
  EXPECT_EQ(FakeCudaFailures(), 0);
  EXPECT_EQ(set(), cudaErrorLaunchFailure);
  EXPECT_EQ(FakeCudaFailures(), 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(set(), cudaSuccess);
  FakeCudaFailAt(2, cudaErrorUnknown);
  EXPECT_NE(cudaStreamQuery(stream.get()), cudaErrorUnknown);
  // What waits or gives back does so although it fails.
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaErrorUnknown);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorUnknown), "cudaErrorUnknown");
}

// What it does beside failing does not matter here: every call can be made to fail.
TEST_F(FakeCudaTest, EveryCallFailsWhenItIsTo) {
  const CudaMemory memory(64);
  const ScopedStream stream;
  const CudaEvent event;
  std::vector<char> host(64);
  void* pointer = nullptr;
  int number = 0;
  size_t bytes = 0;
  float ms = 0;
  cudaStream_t made_stream = nullptr;
  cudaEvent_t made_event = nullptr;
  cudaDeviceProp properties;
  cudaPointerAttributes attributes;
  cudaGraph_t graph = nullptr;
  cudaStreamCaptureStatus status;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  cudaIpcMemHandle_t memory_handle = {};
  cudaIpcEventHandle_t event_handle = {};
  // clang-format off
#define CALL(name, ...) {#name, [&] { return name(__VA_ARGS__); }}
  const std::map<std::string, std::function<cudaError_t()>> calls = {
      CALL(cudaGetDeviceCount, &number), CALL(cudaSetDevice, 0), CALL(cudaGetDevice, &number),
      CALL(cudaGetDeviceProperties, &properties, 0),
      CALL(cudaDeviceGetAttribute, &number, cudaDevAttrWarpSize, 0),
      CALL(cudaDeviceGetPCIBusId, host.data(), 64, 0),
      CALL(cudaDeviceGetStreamPriorityRange, &number, &number),
      CALL(cudaDeviceCanAccessPeer, &number, 0, 0), CALL(cudaDeviceEnablePeerAccess, 1, 0),
      CALL(cudaGetDriverEntryPointByVersion, "cuMemGetAddressRange", &pointer, 1, 0),
      CALL(cudaDriverGetVersion, &number), CALL(cudaRuntimeGetVersion, &number),
      CALL(cudaMalloc, &pointer, 8), CALL(cudaFree, nullptr), CALL(cudaMemGetInfo, &bytes, &bytes),
      CALL(cudaHostRegister, host.data(), 64, 0),
      CALL(cudaPointerGetAttributes, &attributes, host.data()),
      CALL(cudaStreamCreateWithFlags, &made_stream, 0),
      CALL(cudaStreamCreateWithPriority, &made_stream, 0, 0),
      CALL(cudaStreamWaitEvent, stream.get(), event.get()), CALL(cudaStreamQuery, stream.get()),
      CALL(cudaStreamSynchronize, stream.get()), CALL(cudaStreamGetDevice, stream.get(), &number),
      CALL(cudaStreamBeginCapture, stream.get(), cudaStreamCaptureModeGlobal),
      CALL(cudaStreamEndCapture, stream.get(), &graph),
      CALL(cudaStreamIsCapturing, stream.get(), &status),
      CALL(cudaThreadExchangeStreamCaptureMode, &mode),
      {"cudaFuncGetAttributes", [&] { return FakeCudaLoad("a kernel"); }},
      CALL(cudaEventCreateWithFlags, &made_event, 0),
      CALL(cudaEventRecord, event.get(), stream.get()), CALL(cudaEventQuery, event.get()),
      CALL(cudaEventSynchronize, event.get()),
      CALL(cudaEventElapsedTime, &ms, event.get(), event.get()),
      CALL(cudaMemcpy, memory.data(), host.data(), 64, cudaMemcpyDefault),
      CALL(cudaMemcpyAsync, memory.data(), host.data(), 64, cudaMemcpyDefault),
      CALL(cudaMemcpy2DAsync, memory.data(), 8, host.data(), 8, 8, 8, cudaMemcpyDefault),
      CALL(cudaMemsetAsync, memory.data(), 0, 64),
      {"cudaLaunchKernel", [&] { return FakeCudaEnqueue(stream.get(), [] {}); }},
      CALL(cudaIpcGetMemHandle, &memory_handle, memory.data()),
      CALL(cudaIpcOpenMemHandle, &pointer, memory_handle, 1),
      CALL(cudaIpcGetEventHandle, &event_handle, event.get()),
      CALL(cudaIpcOpenEventHandle, &made_event, event_handle)};
  // clang-format on
#undef CALL
  int failed = 0;
  for (const auto& [name, call] : calls) {
    FakeCudaFailAt(name, 1, cudaErrorLaunchTimeout);
    EXPECT_EQ(call(), cudaErrorLaunchTimeout) << name;
    EXPECT_EQ(FakeCudaFailures(), ++failed) << name;
  }
}

// What gives something back does so although it fails.
TEST_F(FakeCudaTest, NothingIsLeftWhenFreeingFails) {
  std::vector<char> host(64);
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  ASSERT_EQ(cudaHostRegister(host.data(), 64, 0), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, 0), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, 0), cudaSuccess);
  for (int nth = 1; nth <= 4; ++nth) FakeCudaFailAt(nth, cudaErrorUnknown);
  EXPECT_EQ(cudaFree(memory), cudaErrorUnknown);
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaErrorUnknown);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorUnknown);
  EXPECT_EQ(cudaEventDestroy(event), cudaErrorUnknown);
}

TEST_F(FakeCudaTest, WhoeverKnowsOfLaterWorkKnowsOfEarlier) {
  const CudaMemory memory(64);
  const CudaEvent event;
  const ScopedStream first;
  const ScopedStream second;
  ASSERT_EQ(cudaMemsetAsync(memory.data(), 1, 64, first.get()), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event.get(), first.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second.get(), event.get()), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(memory.data(), 2, 64, second.get()), cudaSuccess);
  // That the first stream is done follows, and the memory may be freed.
  EXPECT_EQ(cudaStreamSynchronize(second.get()), cudaSuccess);
}

}  // namespace
}  // namespace sluice
