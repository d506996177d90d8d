// The kernel that reduces units.
#include "device/cuda_kernels.h"
#include "device/cuda_launch.h"
#include "device/cuda_pieces.h"
#include "device/cuda_reduce.h"

namespace sluice {

cudaError_t LaunchReductions(const CudaLaunch& launch, CudaReduction* pieces,
                             CudaReduction* on_device, int count) {
  return LaunchTiles<CudaReduction, UnitTiles<CudaReduction, &Reduce>>(launch, pieces, on_device,
                                                                       count);
}

}  // namespace sluice
