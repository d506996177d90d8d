// Pieces, which kernels work on: each cut into units that one thread does at once, and tiles of
// units that a block does. Computes a unit's place in memory from its number.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_PIECES_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_PIECES_H_

#include <cstddef>
#include <cstdint>

#include "device/cuda/cuda_host_device.h"
#include "device/pixel_grid.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

inline constexpr uint32_t kBlockThreads = 256;
inline constexpr uint32_t kUnitsPerThread = 4;
inline constexpr uint32_t kTileUnits = kBlockThreads * kUnitsPerThread;
inline constexpr int64_t kMaxPieceUnits = int64_t{1} << 30;

// Units of pieces whose elements are computed with. `kFull`: as many elements as FullUnit says, at
// addresses that are multiples of their bytes together. `kElement`: one element. `kUnaligned`: one
// element at an address that is no multiple of its size.
enum class CudaUnit : uint8_t { kFull, kElement, kUnaligned };

// Division by a number that is known beforehand.
struct FastDivisor {
  uint32_t divisor = 1;
  uint32_t multiplier = 1;
  uint32_t shift = 0;

  FastDivisor() = default;
  explicit FastDivisor(uint32_t by);  // 1 .. 2^31

  // For values below 2^31.
  SLUICE_HOST_DEVICE uint32_t Quotient(uint32_t value) const {
    const auto high = static_cast<uint32_t>((uint64_t{value} * multiplier) >> 32);
    return (high + value) >> shift;
  }
};

// A copy of units on a grid of at most four dimensions, the first of which is numbered fastest.
struct CudaMove {
  static constexpr int kAxes = 4;

  const std::byte* src = nullptr;  // of unit 0
  std::byte* dst = nullptr;
  FastDivisor counts[kAxes - 1];  // along all dimensions but the last
  uint32_t units = 0;
  int64_t src_strides[kAxes] = {};  // bytes
  int64_t dst_strides[kAxes] = {};
  uint32_t first_tile = 0;  // of the launch
  DType src_dtype = DType::kU8;
  DType dst_dtype = DType::kU8;
  uint8_t unit_bytes = 1;              // of equal types: 1, 2, 4, 8 or 16
  CudaUnit unit = CudaUnit::kElement;  // of different types
};

// A copy of few bytes that are consecutive on both sides. Its addresses are distances from the
// bases of its launch, below 2^40. So thousands of copies travel with one launch.
struct CudaSmallCopy {
  static constexpr uint64_t kReach = uint64_t{1} << 40;

  uint32_t src = 0;  // the lowest 32 bits
  uint32_t dst = 0;
  uint16_t bytes = 0;
  uint8_t src_high = 0;  // those above
  uint8_t dst_high = 0;

  SLUICE_HOST_DEVICE const std::byte* From(const std::byte* base) const {
    return base + (uint64_t{src_high} << 32 | src);
  }
  SLUICE_HOST_DEVICE std::byte* To(std::byte* base) const {
    return base + (uint64_t{dst_high} << 32 | dst);
  }
};
inline constexpr int64_t kSmallCopyBytes = 4096;  // at most
inline constexpr uint32_t kSmallLanes = 8;        // threads that share one

// A copy of elements that are consecutive across on the source's side, and down on the
// destination's, many times over. A block does a square of them.
struct CudaTranspose {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  int64_t src_stride = 0;     // bytes from one position down to the next
  int64_t dst_stride = 0;     // bytes from one position across to the next
  int64_t src_outer[2] = {};  // bytes between what is transposed
  int64_t dst_outer[2] = {};
  uint32_t across = 0;  // positions
  uint32_t down = 0;
  FastDivisor tiles_across;
  FastDivisor tiles_down;
  FastDivisor outer;  // positions of the first outer dimension
  uint32_t tiles = 0;
  uint32_t first_tile = 0;
  uint8_t element_bytes = 1;  // 1, 2, 4, 8 or 16
};

// Makes a transposition of a copy that is one, of both sides large enough to be worth it.
bool MakeTranspose(const CudaMove& move, CudaTranspose* transpose);

// How many elements a square has along each side.
SLUICE_HOST_DEVICE constexpr uint32_t SquareSide(int element_bytes) {
  return element_bytes <= 2 ? 64 : 32;
}

// reduction.h says what it does; both sides are contiguous.
struct CudaReduction {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  int64_t divisor = 1;
  uint32_t units = 0;
  uint32_t first_tile = 0;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;
  CudaUnit unit = CudaUnit::kElement;
};

// normalization.h says what it does; both sides are contiguous.
struct CudaNormalization {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  float scale = 1;
  float bias = 0;
  uint32_t units = 0;
  uint32_t first_tile = 0;
  DType src_dtype = DType::kU8;
  DType dst_dtype = DType::kF32;
  CudaUnit unit = CudaUnit::kElement;
};

// Boxes of pixels that normalization.h makes of an item of pixels. A unit is a pixel where channels
// become planes, so that threads next to each other store side by side; otherwise one element.
struct CudaPixels {
  const std::byte* src = nullptr;  // of unit 0
  std::byte* dst = nullptr;
  int64_t src_row = 0;  // bytes from one row to the next
  int64_t dst_row = 0;
  int64_t src_pixel = 0;
  int64_t dst_pixel = 0;
  int64_t dst_channel = 0;  // of the source's: one element
  FastDivisor units_of_pixel;
  FastDivisor columns;
  uint32_t channels_of_unit = 1;
  uint32_t units = 0;
  uint32_t first_tile = 0;
  DType src_dtype = DType::kU8;
  DType dst_dtype = DType::kF32;
  bool aligned = true;             // single elements are
  bool by_channel = false;         // false: the first scale and bias are those of all elements
  float scale[kMaxChannels] = {};  // from unit 0's channel on
  float bias[kMaxChannels] = {};
};

struct CudaPlace {
  int64_t src;  // byte offset from the piece's first unit
  int64_t dst;
};

SLUICE_HOST_DEVICE CudaPlace PlaceOf(const CudaMove& piece, uint32_t unit) {
  CudaPlace place = {0, 0};
  SLUICE_UNROLL
  for (int axis = 0; axis + 1 < CudaMove::kAxes; ++axis) {
    const uint32_t above = piece.counts[axis].Quotient(unit);
    const int64_t along = unit - above * piece.counts[axis].divisor;
    place.src += along * piece.src_strides[axis];
    place.dst += along * piece.dst_strides[axis];
    unit = above;
  }
  place.src += unit * piece.src_strides[CudaMove::kAxes - 1];
  place.dst += unit * piece.dst_strides[CudaMove::kAxes - 1];
  return place;
}

template <class Piece>
uint32_t TilesOf(const Piece& piece) {
  return (piece.units + kTileUnits - 1) / kTileUnits;
}
inline uint32_t TilesOf(const CudaTranspose& piece) { return piece.tiles; }

// Gives each piece its tiles; returns how many they are together.
template <class Piece>
uint32_t NumberTiles(Piece* pieces, int count) {
  uint32_t tiles = 0;
  for (int i = 0; i < count; ++i) {
    pieces[i].first_tile = tiles;
    tiles += TilesOf(pieces[i]);
  }
  return tiles;
}

// The piece that a tile of the launch belongs to: the last one that begins no later.
template <class Piece>
SLUICE_HOST_DEVICE int PieceOf(const Piece* pieces, int count, uint32_t tile) {
  int low = 0;
  while (count > 1) {
    const int half = count / 2;
    if (pieces[low + half].first_tile <= tile) low += half;
    count -= half;
  }
  return low;
}

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_PIECES_H_
