// Streams that the application captures into graphs.
#ifndef SLUICE_TESTS_CUDA_CUDA_CAPTURED_STREAM_H_
#define SLUICE_TESTS_CUDA_CUDA_CAPTURED_STREAM_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace sluice::session_test {

// A stream of a device that is being captured, in the mode that forbids most.
class CapturedStream {
 public:
  explicit CapturedStream(int device) {
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  }
  CapturedStream(const CapturedStream&) = delete;
  CapturedStream& operator=(const CapturedStream&) = delete;

  cudaStream_t get() const { return stream_; }
  // Nothing has invalidated the capture.
  void End() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    if (graph != nullptr) {
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  // Somebody has.
  void Lose() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

 private:
  cudaStream_t stream_ = nullptr;
};

// Captures on a thread of its own until told to end.
class CapturingThread {
 public:
  explicit CapturingThread(int device)
      : thread_([this, device] {
          CapturedStream stream(device);
          captures_ = true;
          while (!ends_) std::this_thread::yield();
          stream.End();
        }) {
    while (!captures_) std::this_thread::yield();
  }
  ~CapturingThread() {
    ends_ = true;
    thread_.join();
  }
  CapturingThread(const CapturingThread&) = delete;
  CapturingThread& operator=(const CapturingThread&) = delete;

 private:
  std::atomic<bool> captures_ = false;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_CUDA_CUDA_CAPTURED_STREAM_H_
