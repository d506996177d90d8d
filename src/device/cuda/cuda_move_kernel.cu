// The kernel that moves units.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/cuda_launch.h"
#include "device/cuda/cuda_move.h"
#include "device/cuda/cuda_pieces.h"

namespace sluice {

cudaError_t LaunchMoves(const CudaLaunch& launch, CudaMove* pieces, int count) {
  return LaunchTiles<CudaMove, UnitTiles<CudaMove, &Move>>(launch, pieces, count);
}

cudaError_t LoadMoves() { return LoadTiles<CudaMove, UnitTiles<CudaMove, &Move>>(); }

}  // namespace sluice
