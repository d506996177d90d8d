// Runs pieces on the host as the kernels do on a GPU: the same bodies, thread by thread.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_TILES_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_TILES_H_

#include <cstdint>

#include "device/cuda_pieces.h"

namespace sluice {

// `pieces` have their tiles; `tiles` is how many there are.
template <class Piece, void (*kOnUnits)(const Piece&, uint32_t first, uint32_t step)>
void RunTiles(const Piece* pieces, int count, uint32_t tiles) {
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    const Piece& piece = pieces[PieceOf(pieces, count, tile)];
    const uint32_t first = (tile - piece.first_tile) * kTileUnits;
    for (uint32_t thread = 0; thread < kBlockThreads && first + thread < piece.units; ++thread) {
      kOnUnits(piece, first + thread, kBlockThreads);
    }
  }
}

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_TILES_H_
