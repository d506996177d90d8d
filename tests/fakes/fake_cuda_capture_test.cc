// Captures of the fake CUDA runtime: what they forbid to which threads, and how they are lost.
#include <functional>
#include <thread>

#include "cuda_runtime_api.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

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
