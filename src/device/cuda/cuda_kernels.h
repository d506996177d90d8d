// Launches of the kernels, for host code.
#ifndef SLUICE_SRC_DEVICE_CUDA_KERNELS_H_
#define SLUICE_SRC_DEVICE_CUDA_KERNELS_H_

#include <cuda_runtime_api.h>

#include "device/cuda_pieces.h"

namespace sluice {

// So many pieces travel with the launch itself; more are copied to the GPU first.
inline constexpr int kPiecesOfLaunch = 16;

struct CudaLaunch {
  cudaStream_t stream = nullptr;
  int multiprocessors = 1;  // of the stream's device
};

// Launches a kernel on `count` pieces, at least one; moves are between equal types, casts between
// different ones. Fills in their first_tile. Where there are
// more than kPiecesOfLaunch, they must lie in pinned memory and stay as they are, and `on_device`
// must have room for them and not be used, until the stream has got past this; otherwise neither
// is needed after the call.
cudaError_t LaunchMoves(const CudaLaunch& launch, CudaMove* pieces, CudaMove* on_device, int count);
cudaError_t LaunchCasts(const CudaLaunch& launch, CudaMove* pieces, CudaMove* on_device, int count);
cudaError_t LaunchTransposes(const CudaLaunch& launch, CudaTranspose* pieces,
                             CudaTranspose* on_device, int count);
cudaError_t LaunchReductions(const CudaLaunch& launch, CudaReduction* pieces,
                             CudaReduction* on_device, int count);
cudaError_t LaunchNormalizations(const CudaLaunch& launch, CudaNormalization* pieces,
                                 CudaNormalization* on_device, int count);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_KERNELS_H_
