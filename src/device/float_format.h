// The floating types of at most 16 bits, described: how many bits each part has, and what follows.
#ifndef SLUICE_SRC_DEVICE_FLOAT_FORMAT_H_
#define SLUICE_SRC_DEVICE_FLOAT_FORMAT_H_

#include <cstdint>

namespace sluice {

// 2^exponent, which is a normal number.
constexpr float PowerOfTwo(int exponent) {
  float power = 1;
  for (; exponent > 0; --exponent) power *= 2;
  for (; exponent < 0; ++exponent) power /= 2;
  return power;
}

// Without infinities the largest code is the only NaN, and what overflows becomes the largest
// number.
template <typename CodeType, int kExponent, int kMantissa, bool kInfinities>
struct SmallFloat {
  using Code = CodeType;
  static constexpr int kMantissaBits = kMantissa;
  static constexpr int kDropped = 23 - kMantissa;  // mantissa bits that f32 has more
  static constexpr int kSignShift = 31 - kExponent - kMantissa;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr int32_t kMagnitude = (1 << (kExponent + kMantissa)) - 1;
  static constexpr int32_t kMinNormal = 1 << kMantissa;
  // Below the normal numbers a code counts these.
  static constexpr float kUnit = PowerOfTwo(1 - kBias - kMantissa);
  // The last bit of this number is one unit: adding it rounds to units.
  static constexpr float kRounder = PowerOfTwo(24 - kBias - kMantissa);
  // The first code that is no finite number.
  static constexpr int32_t kSpecial = kInfinities ? kMagnitude - (1 << kMantissa) + 1 : kMagnitude;
  static constexpr int32_t kOverflow = kInfinities ? kSpecial : kSpecial - 1;
  static constexpr bool kHasInfinities = kInfinities;
  static constexpr bool kUpperHalf = kExponent == 8;  // its codes are the upper bits of f32
};

using F16 = SmallFloat<uint16_t, 5, 10, true>;
using BF16 = SmallFloat<uint16_t, 8, 7, true>;
using F8E4M3 = SmallFloat<uint8_t, 4, 3, false>;
using F8E5M2 = SmallFloat<uint8_t, 5, 2, true>;

inline constexpr int32_t kF32Infinity = 0x7F800000;
inline constexpr uint32_t kF32Quiet = 0x00400000;

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_FLOAT_FORMAT_H_
