// The kernel that casts units.
#include "device/cuda/cuda_cast_move.h"
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/cuda_pieces.h"

namespace sluice {

cudaError_t LaunchCasts(const CudaLaunch& launch, CudaMove* pieces, int count) {
  return LaunchTiles<CudaMove, UnitTiles<CudaMove, &Cast>>(launch, pieces, count);
}

cudaError_t LoadCasts() { return LoadTiles<CudaMove, UnitTiles<CudaMove, &Cast>>(); }

}  // namespace sluice
