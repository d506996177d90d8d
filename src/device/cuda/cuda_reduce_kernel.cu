// The kernel that reduces units.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/cuda_pieces.h"
#include "device/cuda/cuda_reduce.h"

namespace sluice {

cudaError_t LaunchReductions(const CudaLaunch& launch, CudaReduction* pieces, int count) {
  return LaunchTiles<CudaReduction, UnitTiles<CudaReduction, &Reduce>>(launch, pieces, count);
}

cudaError_t LoadReductions() {
  return LoadTiles<CudaReduction, UnitTiles<CudaReduction, &Reduce>>();
}

}  // namespace sluice
