// The kernel that transposes, square by square.
#include <cstddef>
#include <cstdint>

#include "device/cuda/cuda_elements.h"
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/cuda_pieces.h"
#include "device/cuda/cuda_transpose.h"

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

cudaError_t LaunchTransposes(const CudaLaunch& launch, CudaTranspose* pieces, int count) {
  return LaunchTiles<CudaTranspose, Squares>(launch, pieces, count);
}

cudaError_t LoadTransposes() { return LoadTiles<CudaTranspose, Squares>(); }

}  // namespace sluice
