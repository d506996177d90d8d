// The kernel that transposes, square by square.
#include <cstddef>
#include <cstdint>

#include "device/cuda_elements.h"
#include "device/cuda_kernels.h"
#include "device/cuda_launch.h"
#include "device/cuda_pieces.h"
#include "device/cuda_transpose.h"

namespace sluice {
namespace {

struct Squares {
  static __device__ __forceinline__ void Do(const CudaTranspose& piece, uint32_t tile) {
    __shared__ alignas(kWidestAccess) std::byte square[kSquareBytes];
    TransposeSquare<TransposePhase::kLoad>(piece, tile, threadIdx.x, square);
    __syncthreads();
    TransposeSquare<TransposePhase::kStore>(piece, tile, threadIdx.x, square);
    // The next one is loaded into the same memory.
    __syncthreads();
  }
};

}  // namespace

cudaError_t LaunchTransposes(const CudaLaunch& launch, CudaTranspose* pieces,
                             CudaTranspose* on_device, int count) {
  return LaunchTiles<CudaTranspose, Squares>(launch, pieces, on_device, count);
}

}  // namespace sluice
