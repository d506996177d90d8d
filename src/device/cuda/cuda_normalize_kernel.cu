// The kernels that normalize: units of contiguous elements, and pixels.
#include <cstdint>

#include "device/cuda/cuda_kernels.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/cuda_normalize.h"
#include "device/cuda/cuda_normalize_pixels.h"
#include "device/cuda/cuda_pieces.h"

namespace sluice {
namespace {

// Pieces stay in constant memory: their factors are too many for registers.
struct PixelTiles {
  static __device__ __forceinline__ void Do(const CudaPixels& piece, uint32_t tile) {
    NormalizePixels(piece, tile * kTileUnits + threadIdx.x, kBlockThreads);
  }
};

}  // namespace

cudaError_t LaunchNormalizations(const CudaLaunch& launch, CudaNormalization* pieces, int count) {
  return LaunchTiles<CudaNormalization, UnitTiles<CudaNormalization, &Normalize>>(launch, pieces,
                                                                                  count);
}

cudaError_t LoadNormalizations() {
  return LoadTiles<CudaNormalization, UnitTiles<CudaNormalization, &Normalize>>();
}

cudaError_t LaunchPixels(const CudaLaunch& launch, CudaPixels* pieces, int count) {
  return LaunchTiles<CudaPixels, PixelTiles>(launch, pieces, count);
}

cudaError_t LoadPixels() { return LoadTiles<CudaPixels, PixelTiles>(); }

}  // namespace sluice
