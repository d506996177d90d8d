// Runs pieces on the host as the kernels do on a GPU: the same bodies, thread by thread.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_TILES_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_TILES_H_

#include <cstddef>
#include <cstdint>

#include "device/cuda/cuda_elements.h"
#include "device/cuda/cuda_pieces.h"
#include "device/cuda/cuda_transpose.h"

namespace sluice {

// `pieces` have their tiles; `tiles` is how many there are. `on_tile` does one of a piece.
template <class Piece, class OnTile>
void RunEachTile(const Piece* pieces, int count, uint32_t tiles, const OnTile& on_tile) {
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    const Piece& piece = pieces[PieceOf(pieces, count, tile)];
    on_tile(piece, tile - piece.first_tile);
  }
}

template <class Piece, void (*kOnUnits)(const Piece&, uint32_t first, uint32_t step)>
void RunTiles(const Piece* pieces, int count, uint32_t tiles) {
  RunEachTile(pieces, count, tiles, [](const Piece& piece, uint32_t tile) {
    const uint32_t first = tile * kTileUnits;
    for (uint32_t thread = 0; thread < kBlockThreads && first + thread < piece.units; ++thread) {
      kOnUnits(piece, first + thread, kBlockThreads);
    }
  });
}

// All threads of a block load before one of them stores.
inline void RunTransposes(const CudaTranspose* pieces, int count, uint32_t tiles) {
  RunEachTile(pieces, count, tiles, [](const CudaTranspose& piece, uint32_t tile) {
    alignas(kWidestAccess) std::byte square[kSquareBytes];
    for (uint32_t thread = 0; thread < kBlockThreads; ++thread) {
      TransposeSquare<TransposePhase::kLoad>(piece, tile, thread, square);
    }
    for (uint32_t thread = 0; thread < kBlockThreads; ++thread) {
      TransposeSquare<TransposePhase::kStore>(piece, tile, thread, square);
    }
  });
}

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_TILES_H_
