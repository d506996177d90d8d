// Makes and launches every kernel: blocks share out the tiles of a launch, each a stretch of them.
// For nvcc's sources only.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_LAUNCH_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_LAUNCH_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "device/cuda/cuda_kernels.h"
#include "device/cuda/cuda_pieces.h"

namespace sluice {

// Enough to keep a multiprocessor's memory system busy, and few enough that each seldom looks for
// its piece.
inline constexpr uint32_t kBlocksPerMultiprocessor = 16;

// The pieces of one launch. They travel as the kernel's parameter, which lies in constant memory.
// No store can change them, and all threads of a warp read one of them at once.
template <class Piece, int kCount>
struct LaunchedPieces {
  Piece pieces[kCount];
};

// Tiles of units, each thread's work a function of its own. It works on a copy of the piece in
// registers: it would otherwise read the piece anew for every unit.
template <class Piece, void (*kOnUnits)(const Piece&, uint32_t first, uint32_t step)>
struct UnitTiles {
  static __device__ __forceinline__ void Do(const Piece& launched, uint32_t tile) {
    const Piece piece = launched;
    kOnUnits(piece, tile * kTileUnits + threadIdx.x, kBlockThreads);
  }
};

// Tiles::Do does what one thread does of a tile.
template <class Piece, class Tiles, int kCount>
__global__ void __launch_bounds__(kBlockThreads, 4)
    TileKernel(const __grid_constant__ LaunchedPieces<Piece, kCount> launched, int count,
               uint32_t tiles) {
  auto tile = static_cast<uint32_t>(uint64_t{tiles} * blockIdx.x / gridDim.x);
  const auto end = static_cast<uint32_t>(uint64_t{tiles} * (blockIdx.x + 1) / gridDim.x);
  for (int piece = PieceOf(launched.pieces, count, tile); tile < end; ++tile) {
    while (piece + 1 < count && launched.pieces[piece + 1].first_tile <= tile) ++piece;
    Tiles::Do(launched.pieces[piece], tile - launched.pieces[piece].first_tile);
  }
}

template <class Piece, class Tiles, int kCount>
cudaError_t LaunchTilesOf(const CudaLaunch& launch, Piece* pieces, int count, uint32_t tiles) {
  const uint32_t most = static_cast<uint32_t>(launch.multiprocessors) * kBlocksPerMultiprocessor;
  void* arguments[] = {pieces, &count, &tiles};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&TileKernel<Piece, Tiles, kCount>),
                          dim3(std::min(tiles, most)), dim3(kBlockThreads), arguments, 0,
                          launch.stream);
}

template <class Piece, class Tiles>
cudaError_t LaunchTiles(const CudaLaunch& launch, Piece* pieces, int count) {
  const uint32_t tiles = NumberTiles(pieces, count);
  using Room = LaunchRoom<Piece>;
  if (count <= Room::kFew) {
    return LaunchTilesOf<Piece, Tiles, Room::kFew>(launch, pieces, count, tiles);
  }
  return LaunchTilesOf<Piece, Tiles, Room::kMany>(launch, pieces, count, tiles);
}

template <class Piece, class Tiles, int kCount>
cudaError_t LoadTilesOf() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes,
                               reinterpret_cast<const void*>(&TileKernel<Piece, Tiles, kCount>));
}

template <class Piece, class Tiles>
cudaError_t LoadTiles() {
  using Room = LaunchRoom<Piece>;
  const cudaError_t error = LoadTilesOf<Piece, Tiles, Room::kFew>();
  return error == cudaSuccess ? LoadTilesOf<Piece, Tiles, Room::kMany>() : error;
}

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_LAUNCH_H_
