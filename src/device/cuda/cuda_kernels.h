// Launches of the kernels, for host code.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_KERNELS_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstddef>

#include "device/cuda/cuda_pieces.h"

namespace sluice {

// So many pieces fit a launch at most. Their 32 KiB are nearly all that a launch can carry (32,764
// bytes since CUDA 12.1, on sm_70 and later). Each launch carries room for as many as this, or, if
// it has few pieces, for kFewPieces.
inline constexpr int kPiecesOfLaunch = 255;
inline constexpr int kFewPieces = 16;

// How many pieces of a kind launches have room for.
template <class Piece>
struct LaunchRoom {
  static constexpr int kFew = kFewPieces;
  static constexpr int kMany = kPiecesOfLaunch;
};
// They carry the factors of their channels.
template <>
struct LaunchRoom<CudaPixels> {
  static constexpr int kFew = 2;
  static constexpr int kMany = 48;
};

template <>
struct LaunchRoom<CudaSmallCopy> {
  static constexpr int kFew = 80;
  static constexpr int kMany = 2728;
};

// The small copies of a launch, and the bases of their addresses.
struct CudaSmallCopies {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  CudaSmallCopy copies[LaunchRoom<CudaSmallCopy>::kMany];
};

struct CudaLaunch {
  cudaStream_t stream = nullptr;
  int multiprocessors = 1;  // of the stream's device
};

// Launches a kernel on `count` pieces, 1 to LaunchRoom's kMany; moves are between equal types,
// casts between different ones. Fills in their first_tile. The array has room for kFew pieces, or
// for kMany if there are more. The launch carries what lies behind the pieces too, and the kernel
// does not look at it. The array is not needed after the call.
cudaError_t LaunchMoves(const CudaLaunch& launch, CudaMove* pieces, int count);
// `copies` has `count` of them, 1 to LaunchRoom's kMany, and is not needed after the call.
cudaError_t LaunchSmallCopies(const CudaLaunch& launch, const CudaSmallCopies& copies, int count);
cudaError_t LaunchCasts(const CudaLaunch& launch, CudaMove* pieces, int count);
cudaError_t LaunchTransposes(const CudaLaunch& launch, CudaTranspose* pieces, int count);
cudaError_t LaunchReductions(const CudaLaunch& launch, CudaReduction* pieces, int count);
cudaError_t LaunchNormalizations(const CudaLaunch& launch, CudaNormalization* pieces, int count);
cudaError_t LaunchPixels(const CudaLaunch& launch, CudaPixels* pieces, int count);

// Loads a kernel on the current device, which its first launch would do otherwise.
cudaError_t LoadMoves();
cudaError_t LoadSmallCopies();
cudaError_t LoadCasts();
cudaError_t LoadTransposes();
cudaError_t LoadReductions();
cudaError_t LoadNormalizations();
cudaError_t LoadPixels();

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_KERNELS_H_
