// Memory, streams and events of the fake CUDA runtime that end with their scope, and what holds a
// stream up.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_RIG_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_RIG_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>

#include "cuda_runtime_api.h"
#include "fakes/fake_cuda.h"
#include "gtest/gtest.h"

namespace sluice {

class CudaMemory {
 public:
  explicit CudaMemory(size_t bytes) : bytes_(bytes) {
    EXPECT_EQ(cudaMalloc(&data_, bytes), cudaSuccess);
  }
  ~CudaMemory() { cudaFree(data_); }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  void* data() const { return data_; }
  void* At(size_t offset) const { return static_cast<char*>(data_) + offset; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

class ScopedStream {
 public:
  ScopedStream() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  ~ScopedStream() { cudaStreamDestroy(stream_); }
  ScopedStream(const ScopedStream&) = delete;
  ScopedStream& operator=(const ScopedStream&) = delete;

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaEvent {
 public:
  explicit CudaEvent(unsigned flags = cudaEventDisableTiming) {
    EXPECT_EQ(cudaEventCreateWithFlags(&event_, flags), cudaSuccess);
  }
  ~CudaEvent() { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// What is enqueued later on the stream does not begin before Open() is called.
class Door {
 public:
  explicit Door(cudaStream_t stream) {
    EXPECT_EQ(FakeCudaEnqueue(stream,
                              [open = open_] {
                                while (!open->load()) std::this_thread::yield();
                              }),
              cudaSuccess);
  }
  ~Door() { Open(); }
  void Open() { open_->store(true); }

 private:
  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_RIG_H_
