// The kernel that normalizes units.
#include "device/cuda_kernels.h"
#include "device/cuda_launch.h"
#include "device/cuda_normalize.h"
#include "device/cuda_pieces.h"

namespace sluice {

cudaError_t LaunchNormalizations(const CudaLaunch& launch, CudaNormalization* pieces,
                                 CudaNormalization* on_device, int count) {
  return LaunchTiles<CudaNormalization, UnitTiles<CudaNormalization, &Normalize>>(launch, pieces,
                                                                                  on_device, count);
}

}  // namespace sluice
