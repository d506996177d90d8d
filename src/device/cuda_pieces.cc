// The numbers by which divisions become multiplications.
#include "device/cuda_pieces.h"

#include <bit>
#include <cstdint>

namespace sluice {

// With 2^shift the first power of two that is no smaller, 2^32 (2^shift - divisor) / divisor + 1 is
// what a value is multiplied by beside 1; right for all values of 31 bits.
FastDivisor::FastDivisor(uint32_t by) : divisor(by) {
  shift = by == 1 ? 0 : static_cast<uint32_t>(std::bit_width(by - 1));
  multiplier = static_cast<uint32_t>((((uint64_t{1} << shift) - by) << 32) / by + 1);
}

}  // namespace sluice
