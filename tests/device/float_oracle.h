// What casts and reductions must give, one element at a time, from the definitions of the formats.
//
// Shares no code with the implementation: values are numbers here, not bits. Elements are codes:
// their bytes as a little-endian number.
#ifndef SLUICE_TESTS_DEVICE_FLOAT_ORACLE_H_
#define SLUICE_TESTS_DEVICE_FLOAT_ORACLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "device/reduction.h"
#include "sluice/tensor.h"

namespace sluice {

inline constexpr std::array<DType, 6> kFloatTypes = {DType::kF64,  DType::kF32,    DType::kF16,
                                                     DType::kBF16, DType::kF8E4M3, DType::kF8E5M2};
inline constexpr std::array<DType, 4> kSmallTypes = {DType::kF16, DType::kBF16, DType::kF8E4M3,
                                                     DType::kF8E5M2};

// How many bits a format has for each part, and whether it has infinities; without, only the code
// of all ones is NaN.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool infinities;

  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint64_t sign() const { return uint64_t{1} << (exponent_bits + mantissa_bits); }
  uint64_t mantissa_mask() const { return (uint64_t{1} << mantissa_bits) - 1; }
  // The smallest code without sign that is not a finite number.
  uint64_t special() const { return infinities ? sign() - mantissa_mask() - 1 : sign() - 1; }
  bool IsNaN(uint64_t code) const {
    const uint64_t magnitude = code & (sign() - 1);
    return infinities ? magnitude > special() : magnitude == special();
  }
};

// In a header, as every element asks for it.
constexpr FloatFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {11, 52, true};
    case DType::kF32:
      return {8, 23, true};
    case DType::kF16:
      return {5, 10, true};
    case DType::kBF16:
      return {8, 7, true};
    case DType::kF8E4M3:
      return {4, 3, false};
    case DType::kF8E5M2:
      return {5, 2, true};
    default:
      std::abort();
  }
}

// The number that a code stands for, or any NaN.
double Decode(DType dtype, uint64_t code);

// The code nearest to a value that is not NaN, the even one of two.
uint64_t Encode(DType dtype, double value);

// What an element becomes.
uint64_t CastCode(DType from, DType to, uint64_t code);

// One element of a reduction: (dst op src), then divided.
uint64_t ReduceCodes(const Reduction& reduction, uint64_t dst, uint64_t src);

// Elements in memory.
uint64_t LoadCode(const std::byte* at, DType dtype);
void StoreCode(uint64_t code, DType dtype, std::byte* at);
std::vector<std::byte> StoreCodes(const std::vector<uint64_t>& codes, DType dtype);

}  // namespace sluice

#endif  // SLUICE_TESTS_DEVICE_FLOAT_ORACLE_H_
