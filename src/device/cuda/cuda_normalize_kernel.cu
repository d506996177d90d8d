// The kernel that normalizes units.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/cuda_normalize.h"
#include "device/cuda/cuda_pieces.h"

namespace sluice {

cudaError_t LaunchNormalizations(const CudaLaunch& launch, CudaNormalization* pieces, int count) {
  return LaunchTiles<CudaNormalization, UnitTiles<CudaNormalization, &Normalize>>(launch, pieces,
                                                                                  count);
}

cudaError_t LoadNormalizations() {
  return LoadTiles<CudaNormalization, UnitTiles<CudaNormalization, &Normalize>>();
}

}  // namespace sluice
