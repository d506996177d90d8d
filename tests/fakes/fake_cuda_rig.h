// Memory, streams and events of the fake CUDA runtime that end with their scope, and what holds a
// stream up.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_RIG_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_RIG_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

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

// Device memory of `bytes` equal bytes.
class FilledMemory : public CudaMemory {
 public:
  FilledMemory(size_t bytes, int value) : CudaMemory(bytes) {
    const std::vector<unsigned char> host(bytes, static_cast<unsigned char>(value));
    EXPECT_EQ(cudaMemcpy(data(), host.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  }

  std::vector<unsigned char> Fetch() const {
    std::vector<unsigned char> host(bytes());
    EXPECT_EQ(cudaMemcpy(host.data(), data(), bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return host;
  }
  bool IsAll(int value) const {
    return Fetch() == std::vector<unsigned char>(bytes(), static_cast<unsigned char>(value));
  }
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

// Bytes that the device has left.
inline size_t FreeBytes() {
  size_t free = 0;
  size_t total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  return free;
}

// A function of the driver's, as programs get at them.
template <class Function>
Function FindDriver(const char* name) {
  void* function = nullptr;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &function, 12000, 0, nullptr), cudaSuccess);
  return reinterpret_cast<Function>(function);
}

inline cudaIpcMemHandle_t HandleOf(const void* pointer) {
  cudaIpcMemHandle_t handle = {};
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, const_cast<void*>(pointer)), cudaSuccess);
  return handle;
}
inline cudaIpcEventHandle_t HandleOf(const CudaEvent& event) {
  cudaIpcEventHandle_t handle = {};
  EXPECT_EQ(cudaIpcGetEventHandle(&handle, event.get()), cudaSuccess);
  return handle;
}

// Opens a handle: gives the address of its memory, or the event.
inline void* Open(const cudaIpcMemHandle_t& handle, cudaError_t expected = cudaSuccess) {
  void* opened = nullptr;
  EXPECT_EQ(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess), expected);
  return opened;
}
inline cudaEvent_t Open(const cudaIpcEventHandle_t& handle, cudaError_t expected = cudaSuccess) {
  cudaEvent_t opened = nullptr;
  EXPECT_EQ(cudaIpcOpenEventHandle(&opened, handle), expected);
  return opened;
}

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
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  void Open() { open_->store(true); }

 private:
  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_RIG_H_
