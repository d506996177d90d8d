// One thread's work on a square of a transposition: it takes elements to memory that its block
// shares. After all threads have done so, it takes elements from there.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_TRANSPOSE_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_TRANSPOSE_H_

#include <cstddef>
#include <cstdint>

#include "device/cuda/cuda_elements.h"
#include "device/cuda/cuda_host_device.h"
#include "device/cuda/cuda_pieces.h"

namespace sluice {

// Lines of a square are one element longer than they need be, so that elements above each other
// are in different banks.
inline constexpr int kSquareBytes = 32 * 33 * kWidestAccess;

enum class TransposePhase { kLoad, kStore };

template <TransposePhase kPhase, int kBytes>
SLUICE_HOST_DEVICE void TransposeElements(const CudaTranspose& piece, uint32_t tile,
                                          uint32_t thread, std::byte* square) {
  constexpr uint32_t kSide = SquareSide(kBytes);
  constexpr uint32_t kLine = kSide + 1;
  const uint32_t above = piece.tiles_across.Quotient(tile);
  const uint32_t left = (tile - above * piece.tiles_across.divisor) * kSide;
  const uint32_t matrix = piece.tiles_down.Quotient(above);
  const uint32_t top = (above - matrix * piece.tiles_down.divisor) * kSide;
  const uint32_t outer1 = piece.outer.Quotient(matrix);
  const uint32_t outer0 = matrix - outer1 * piece.outer.divisor;
  constexpr bool kLoads = kPhase == TransposePhase::kLoad;
  const std::byte* const src =
      piece.src + outer0 * piece.src_outer[0] + outer1 * piece.src_outer[1];
  std::byte* const dst = piece.dst + outer0 * piece.dst_outer[0] + outer1 * piece.dst_outer[1];
  // Threads are next to each other along what is consecutive.
  SLUICE_UNROLL
  for (uint32_t i = 0; i < kSide * kSide / kBlockThreads; ++i) {
    const uint32_t along = thread % kSide;
    const uint32_t other = thread / kSide + i * (kBlockThreads / kSide);
    const uint32_t x = kLoads ? along : other;
    const uint32_t y = kLoads ? other : along;
    if (left + x >= piece.across || top + y >= piece.down) continue;
    std::byte* const cell = square + size_t{y * kLine + x} * kBytes;
    Pack<uint8_t, kBytes> element;
    if constexpr (kLoads) {
      LoadBytes<kBytes>(src + (top + y) * piece.src_stride + (left + x) * int64_t{kBytes},
                        &element);
      StoreBytes<kBytes>(&element, cell);
    } else {
      LoadBytes<kBytes>(cell, &element);
      StoreBytes<kBytes>(&element,
                         dst + (left + x) * piece.dst_stride + (top + y) * int64_t{kBytes});
    }
  }
}

// The thread's part of a phase. `square` has kSquareBytes.
template <TransposePhase kPhase>
SLUICE_HOST_DEVICE void TransposeSquare(const CudaTranspose& piece, uint32_t tile, uint32_t thread,
                                        std::byte* square) {
  switch (piece.element_bytes) {
    case 16:
      return TransposeElements<kPhase, 16>(piece, tile, thread, square);
    case 8:
      return TransposeElements<kPhase, 8>(piece, tile, thread, square);
    case 4:
      return TransposeElements<kPhase, 4>(piece, tile, thread, square);
    case 2:
      return TransposeElements<kPhase, 2>(piece, tile, thread, square);
    default:
      return TransposeElements<kPhase, 1>(piece, tile, thread, square);
  }
}

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_TRANSPOSE_H_
