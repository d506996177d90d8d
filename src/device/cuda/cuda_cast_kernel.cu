// The kernel that casts units.
#include "device/cuda_cast_move.h"
#include "device/cuda_kernels.h"
#include "device/cuda_launch.h"
#include "device/cuda_pieces.h"

namespace sluice {

cudaError_t LaunchCasts(const CudaLaunch& launch, CudaMove* pieces, CudaMove* on_device,
                        int count) {
  return LaunchTiles<CudaMove, UnitTiles<CudaMove, &Cast>>(launch, pieces, on_device, count);
}

}  // namespace sluice
