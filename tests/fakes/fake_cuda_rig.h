// Memory, streams and events of the fake CUDA runtime that end with their scope.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_RIG_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_RIG_H_

#include <cstddef>

#include "cuda_runtime_api.h"
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

class CudaStream {
 public:
  CudaStream() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  ~CudaStream() { cudaStreamDestroy(stream_); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

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

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_RIG_H_
