// The kernel of small copies.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "device/cuda/cuda_kernels.h"
#include "device/cuda/cuda_small.h"

namespace sluice {
namespace {

// Few threads in a block, so that the copies of one launch are spread over all multiprocessors.
constexpr uint32_t kSmallBlockThreads = 128;

// As CudaSmallCopies begins.
template <int kCount>
struct LaunchedCopies {
  const std::byte* src;
  std::byte* dst;
  CudaSmallCopy copies[kCount];
};

template <int kCount>
__global__ void __launch_bounds__(kSmallBlockThreads)
    SmallKernel(const __grid_constant__ LaunchedCopies<kCount> launched, uint32_t count) {
  const uint32_t thread = blockIdx.x * kSmallBlockThreads + threadIdx.x;
  const uint32_t number = thread / kSmallLanes;
  if (number >= count) return;
  CopySmall(launched.src, launched.dst, launched.copies[number], thread % kSmallLanes);
}

template <int kCount>
cudaError_t LaunchSmall(const CudaLaunch& launch, const CudaSmallCopies& copies, uint32_t count) {
  constexpr uint32_t kOfBlock = kSmallBlockThreads / kSmallLanes;
  void* arguments[] = {const_cast<CudaSmallCopies*>(&copies), &count};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&SmallKernel<kCount>),
                          dim3((count + kOfBlock - 1) / kOfBlock), dim3(kSmallBlockThreads),
                          arguments, 0, launch.stream);
}

}  // namespace

cudaError_t LaunchSmallCopies(const CudaLaunch& launch, const CudaSmallCopies& copies, int count) {
  using Room = LaunchRoom<CudaSmallCopy>;
  const auto copies_count = static_cast<uint32_t>(count);
  return count <= Room::kFew ? LaunchSmall<Room::kFew>(launch, copies, copies_count)
                             : LaunchSmall<Room::kMany>(launch, copies, copies_count);
}

cudaError_t LoadSmallCopies() {
  using Room = LaunchRoom<CudaSmallCopy>;
  cudaFuncAttributes attributes;
  const cudaError_t error =
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&SmallKernel<Room::kFew>));
  if (error != cudaSuccess) return error;
  return cudaFuncGetAttributes(&attributes,
                               reinterpret_cast<const void*>(&SmallKernel<Room::kMany>));
}

}  // namespace sluice
