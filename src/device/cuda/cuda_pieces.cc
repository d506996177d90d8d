// The numbers by which divisions become multiplications, and copies that are transpositions.
#include "device/cuda/cuda_pieces.h"

#include <bit>
#include <cstdint>

namespace sluice {

// 2^shift is the first power of two that is no smaller than the divisor. The multiplier is 2^32
// (2^shift - divisor) / divisor + 1, and Quotient adds the value itself once. Right for all values
// of 31 bits.
FastDivisor::FastDivisor(uint32_t by) : divisor(by) {
  shift = by == 1 ? 0 : static_cast<uint32_t>(std::bit_width(by - 1));
  multiplier = static_cast<uint32_t>((((uint64_t{1} << shift) - by) << 32) / by + 1);
}

bool MakeTranspose(const CudaMove& move, CudaTranspose* transpose) {
  constexpr int64_t kWorthIt = 16;  // positions
  if (move.src_dtype != move.dst_dtype) return false;
  int64_t counts[CudaMove::kAxes];
  int64_t units = move.units;
  for (int axis = 0; axis + 1 < CudaMove::kAxes; ++axis) {
    counts[axis] = move.counts[axis].divisor;
    units /= counts[axis];
  }
  counts[CudaMove::kAxes - 1] = units;
  int across = -1;
  int down = -1;
  for (int axis = 0; axis < CudaMove::kAxes; ++axis) {
    if (counts[axis] < kWorthIt) continue;
    if (move.src_strides[axis] == move.unit_bytes) across = axis;
    if (move.dst_strides[axis] == move.unit_bytes) down = axis;
  }
  if (across < 0 || down < 0 || across == down) return false;
  *transpose = CudaTranspose();
  transpose->src = move.src;
  transpose->dst = move.dst;
  transpose->src_stride = move.src_strides[down];
  transpose->dst_stride = move.dst_strides[across];
  transpose->across = static_cast<uint32_t>(counts[across]);
  transpose->down = static_cast<uint32_t>(counts[down]);
  transpose->element_bytes = move.unit_bytes;
  const uint32_t side = SquareSide(move.unit_bytes);
  transpose->tiles_across = FastDivisor((transpose->across + side - 1) / side);
  transpose->tiles_down = FastDivisor((transpose->down + side - 1) / side);
  transpose->tiles = transpose->tiles_across.divisor * transpose->tiles_down.divisor;
  int outer = 0;
  for (int axis = 0; axis < CudaMove::kAxes; ++axis) {
    if (axis == across || axis == down) continue;
    transpose->src_outer[outer] = move.src_strides[axis];
    transpose->dst_outer[outer] = move.dst_strides[axis];
    if (outer == 0) transpose->outer = FastDivisor(static_cast<uint32_t>(counts[axis]));
    transpose->tiles *= static_cast<uint32_t>(counts[axis]);
    ++outer;
  }
  return true;
}

}  // namespace sluice
