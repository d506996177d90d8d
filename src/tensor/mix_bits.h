// The finalizer of SplitMix64: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014.
#ifndef SLUICE_SRC_TENSOR_MIX_BITS_H_
#define SLUICE_SRC_TENSOR_MIX_BITS_H_

#include <cstdint>

namespace sluice {

// 64 bits into 64 bits, one to one, in which each bit of the result depends on all of `value`.
inline uint64_t MixBits(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_MIX_BITS_H_
