// cub::DeviceMemcpy::Batched: kernels that read tables in device memory.
#include "micro/cuda_batched_copies.h"
#include "micro/cuda_timing.h"

#if __has_include(<cub/device/device_memcpy.cuh>)
#include <cub/device/device_memcpy.cuh>
#define SLUICE_HAVE_CUB_MEMCPY 1
#else
#define SLUICE_HAVE_CUB_MEMCPY 0
#endif

namespace sluice {

#if SLUICE_HAVE_CUB_MEMCPY
namespace {

// A table in pinned memory, and its place in device memory.
template <typename T>
class Table {
 public:
  explicit Table(const std::vector<T>& values) : bytes_(values.size() * sizeof(T)) {
    Check(cudaMallocHost(reinterpret_cast<void**>(&host_), bytes_), "cudaMallocHost");
    Check(cudaMalloc(reinterpret_cast<void**>(&device_), bytes_), "cudaMalloc");
    for (size_t i = 0; i < values.size(); ++i) host_[i] = values[i];
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() {
    (void)cudaFree(device_);
    (void)cudaFreeHost(host_);
  }

  // The place, where the stream is about to have the table.
  T* Upload(cudaStream_t stream) {
    Check(cudaMemcpyAsync(device_, host_, bytes_, cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
    return device_;
  }
  T* device() const { return device_; }

 private:
  const size_t bytes_;
  T* host_ = nullptr;
  T* device_ = nullptr;
};

class CubBatch : public BatchedCopy {
 public:
  explicit CubBatch(const CopyPieces& pieces)
      : count_(static_cast<int64_t>(pieces.bytes.size())),
        srcs_(pieces.srcs),
        dsts_(pieces.dsts),
        bytes_(pieces.bytes) {
    Check(cub::DeviceMemcpy::Batched(nullptr, scratch_bytes_, srcs_.device(), dsts_.device(),
                                     bytes_.device(), count_),
          "cub::DeviceMemcpy::Batched");
    Check(cudaMalloc(&scratch_, scratch_bytes_), "cudaMalloc");
  }
  ~CubBatch() override { (void)cudaFree(scratch_); }

  const char* name() const override { return "cub::DeviceMemcpy::Batched"; }

  cudaError_t Start(cudaStream_t stream) override {
    return cub::DeviceMemcpy::Batched(scratch_, scratch_bytes_, srcs_.Upload(stream),
                                      dsts_.Upload(stream), bytes_.Upload(stream), count_, stream);
  }

 private:
  const int64_t count_;
  Table<const void*> srcs_;
  Table<void*> dsts_;
  Table<size_t> bytes_;
  size_t scratch_bytes_ = 0;
  void* scratch_ = nullptr;
};

}  // namespace

std::unique_ptr<BatchedCopy> MakeCubBatch(const CopyPieces& pieces) {
  return std::make_unique<CubBatch>(pieces);
}
#else
std::unique_ptr<BatchedCopy> MakeCubBatch(const CopyPieces& /*pieces*/) { return nullptr; }
#endif

}  // namespace sluice
