// One thread's work on a piece of a copy between equal types: it moves up to four units.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_MOVE_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_MOVE_H_

#include <cstddef>
#include <cstdint>

#include "device/cuda/cuda_elements.h"
#include "device/cuda/cuda_host_device.h"
#include "device/cuda/cuda_pieces.h"

namespace sluice {

// All loads are under way before the first is waited for.
template <int kBytes>
SLUICE_HOST_DEVICE void MoveUnits(const CudaMove& piece, uint32_t first, uint32_t step) {
  Pack<uint8_t, kBytes> loaded[kUnitsPerThread] = {};
  std::byte* to[kUnitsPerThread] = {};
  SLUICE_UNROLL
  for (uint32_t i = 0; i < kUnitsPerThread; ++i) {
    const uint32_t unit = first + i * step;
    if (unit >= piece.units) continue;
    const CudaPlace place = PlaceOf(piece, unit);
    to[i] = piece.dst + place.dst;
    LoadBytes<kBytes>(piece.src + place.src, &loaded[i]);
  }
  SLUICE_UNROLL
  for (uint32_t i = 0; i < kUnitsPerThread; ++i) {
    if (first + i * step < piece.units) StoreBytes<kBytes>(&loaded[i], to[i]);
  }
}

// Units first, first + step ..., kUnitsPerThread of them or as many as there are.
SLUICE_HOST_DEVICE void Move(const CudaMove& piece, uint32_t first, uint32_t step) {
  switch (piece.unit_bytes) {
    case 16:
      return MoveUnits<16>(piece, first, step);
    case 8:
      return MoveUnits<8>(piece, first, step);
    case 4:
      return MoveUnits<4>(piece, first, step);
    case 2:
      return MoveUnits<2>(piece, first, step);
    default:
      return MoveUnits<1>(piece, first, step);
  }
}

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_MOVE_H_
