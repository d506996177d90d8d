// How every kernel is made and launched: blocks share out the tiles of a launch, each a stretch of
// them. For nvcc's sources only.
#ifndef SLUICE_SRC_DEVICE_CUDA_LAUNCH_H_
#define SLUICE_SRC_DEVICE_CUDA_LAUNCH_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/cuda_kernels.h"
#include "device/cuda_pieces.h"

namespace sluice {

// Enough to keep a multiprocessor's memory system busy, and few enough that each seldom looks for
// its piece.
inline constexpr uint32_t kBlocksPerMultiprocessor = 16;

template <class Piece>
struct LaunchedPieces {
  Piece pieces[kPiecesOfLaunch];
};

// Tiles of units, each thread's work a function of its own.
template <class Piece, void (*kOnUnits)(const Piece&, uint32_t first, uint32_t step)>
struct UnitTiles {
  static __device__ __forceinline__ void Do(const Piece& piece, uint32_t tile) {
    kOnUnits(piece, tile * kTileUnits + threadIdx.x, kBlockThreads);
  }
};

// Tiles::Do does what one thread does of a tile. `more` has the pieces where they are too many for
// `few`.
template <class Piece, class Tiles>
__global__ void __launch_bounds__(kBlockThreads, 4)
    TileKernel(const __grid_constant__ LaunchedPieces<Piece> few, const Piece* more, int count,
               uint32_t tiles) {
  const Piece* const pieces = more == nullptr ? few.pieces : more;
  auto tile = static_cast<uint32_t>(uint64_t{tiles} * blockIdx.x / gridDim.x);
  const auto end = static_cast<uint32_t>(uint64_t{tiles} * (blockIdx.x + 1) / gridDim.x);
  for (int piece = PieceOf(pieces, count, tile); tile < end; ++tile) {
    while (piece + 1 < count && pieces[piece + 1].first_tile <= tile) ++piece;
    Tiles::Do(pieces[piece], tile - pieces[piece].first_tile);
  }
}

template <class Piece, class Tiles>
cudaError_t LaunchTiles(const CudaLaunch& launch, Piece* pieces, Piece* on_device, int count) {
  uint32_t tiles = NumberTiles(pieces, count);
  LaunchedPieces<Piece> few;
  const Piece* more = nullptr;
  if (count <= kPiecesOfLaunch) {
    std::copy_n(pieces, count, few.pieces);
  } else {
    const cudaError_t copied =
        cudaMemcpyAsync(on_device, pieces, static_cast<size_t>(count) * sizeof(Piece),
                        cudaMemcpyHostToDevice, launch.stream);
    if (copied != cudaSuccess) return copied;
    more = on_device;
  }
  const uint32_t most = static_cast<uint32_t>(launch.multiprocessors) * kBlocksPerMultiprocessor;
  void* arguments[] = {&few, &more, &count, &tiles};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&TileKernel<Piece, Tiles>),
                          dim3(std::min(tiles, most)), dim3(kBlockThreads), arguments, 0,
                          launch.stream);
}

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_LAUNCH_H_
