// The kernel that moves units.
#include "device/cuda_kernels.h"
#include "device/cuda_launch.h"
#include "device/cuda_move.h"
#include "device/cuda_pieces.h"

namespace sluice {

cudaError_t LaunchMoves(const CudaLaunch& launch, CudaMove* pieces, CudaMove* on_device,
                        int count) {
  return LaunchTiles<CudaMove, UnitTiles<CudaMove, &Move>>(launch, pieces, on_device, count);
}

}  // namespace sluice
