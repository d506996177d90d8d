// Casts of one element between floating types, with the same bits as cast_rows.h on every
// processor.
//
// NaNs are taken apart as integers: what a GPU's conversion makes of them is not what a CPU's does.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_CAST_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_CAST_H_

#include <cstdint>
#include <cstring>

#include "device/cuda/cuda_host_device.h"
#include "device/float_format.h"

namespace sluice {

// How many bits the mantissa of f64 has more than that of f32.
inline constexpr int kF64Dropped = 29;

template <typename To, typename From>
SLUICE_HOST_DEVICE To BitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

SLUICE_HOST_DEVICE bool IsNaN(float value) { return value != value; }
SLUICE_HOST_DEVICE bool IsNaN(double value) { return value != value; }

// The one NaN that reductions give.
template <typename T>
SLUICE_HOST_DEVICE T QuietNaN();
template <>
SLUICE_HOST_DEVICE float QuietNaN<float>() {
  return BitsAs<float>(static_cast<uint32_t>(kF32Infinity) | kF32Quiet);
}
template <>
SLUICE_HOST_DEVICE double QuietNaN<double>() {
  return BitsAs<double>(uint64_t{0x7FF8} << 48);
}

// From a code to f32, exact. A NaN becomes quiet.
template <class Format>
SLUICE_HOST_DEVICE float Widen(typename Format::Code code) {
  if constexpr (Format::kUpperHalf) {
    const float value = BitsAs<float>(uint32_t{code} << 16);
    return IsNaN(value) ? BitsAs<float>((uint32_t{code} << 16) | kF32Quiet) : value;
  } else {
    const int32_t magnitude = code & Format::kMagnitude;
    const int32_t shifted = magnitude << Format::kDropped;
    int32_t bits = shifted + ((127 - Format::kBias) << 23);
    if (magnitude < Format::kMinNormal) {
      bits = BitsAs<int32_t>(static_cast<float>(magnitude) * Format::kUnit);
    } else if (magnitude >= Format::kSpecial) {
      bits = shifted | kF32Infinity;
      if (bits > kF32Infinity) bits |= static_cast<int32_t>(kF32Quiet);
    }
    const uint32_t sign = (uint32_t{code} << Format::kSignShift) & 0x80000000u;
    return BitsAs<float>(static_cast<uint32_t>(bits) | sign);
  }
}

// To the nearest multiple of 2^kDropped, the even one of two, and in units of that. A carry goes
// into the exponent, as it should.
template <class Format>
SLUICE_HOST_DEVICE uint32_t RoundedBits(uint32_t bits) {
  const uint32_t odd = (bits >> Format::kDropped) & 1;
  return (bits + ((1u << (Format::kDropped - 1)) - 1) + odd) >> Format::kDropped;
}

// From f32 to the nearest code, the even one of two.
template <class Format>
SLUICE_HOST_DEVICE typename Format::Code Narrow(float value) {
  using Code = typename Format::Code;
  const auto bits = BitsAs<uint32_t>(value);
  if constexpr (Format::kUpperHalf) {
    if (IsNaN(value)) return static_cast<Code>((bits >> 16) | (kF32Quiet >> 16));
    return static_cast<Code>(RoundedBits<Format>(bits));
  } else {
    constexpr int32_t kFirstNormal = (128 - Format::kBias) << 23;
    constexpr int32_t kBiasDifference = (127 - Format::kBias) << Format::kMantissaBits;
    const auto magnitude = static_cast<int32_t>(bits & 0x7FFFFFFFu);
    int32_t code;
    if (!Format::kHasInfinities && magnitude > kF32Infinity) {
      code = Format::kSpecial;
    } else if (magnitude > kF32Infinity) {
      constexpr int32_t kQuiet = 1 << (Format::kMantissaBits - 1);
      constexpr int32_t kPayload = (1 << Format::kMantissaBits) - 1;
      code = ((magnitude >> Format::kDropped) & kPayload) | Format::kSpecial | kQuiet;
    } else {
      code = magnitude < kFirstNormal
                 ? BitsAs<int32_t>(BitsAs<float>(magnitude) + Format::kRounder) -
                       BitsAs<int32_t>(Format::kRounder)
                 : static_cast<int32_t>(RoundedBits<Format>(static_cast<uint32_t>(magnitude))) -
                       kBiasDifference;
      if (code > Format::kOverflow) code = Format::kOverflow;
    }
    const uint32_t sign =
        (bits >> Format::kSignShift) & static_cast<uint32_t>(Format::kMagnitude + 1);
    return static_cast<Code>(static_cast<uint32_t>(code) | sign);
  }
}

SLUICE_HOST_DEVICE float NarrowNaN(double value) {
  const auto bits = BitsAs<uint64_t>(value);
  const auto sign = static_cast<uint32_t>(bits >> 32) & 0x80000000u;
  const auto payload = static_cast<uint32_t>(bits >> kF64Dropped) & 0x007FFFFFu;
  return BitsAs<float>(sign | static_cast<uint32_t>(kF32Infinity) | kF32Quiet | payload);
}

// To the nearest f32.
SLUICE_HOST_DEVICE float ToF32(double value) {
  return IsNaN(value) ? NarrowNaN(value) : static_cast<float>(value);
}

// Gives the neighbour whose last bit is set, if inexact. Rounding that again is as good as rounding
// once.
SLUICE_HOST_DEVICE float ToOddF32(double value) {
  if (IsNaN(value)) return NarrowNaN(value);
  const auto nearest = static_cast<float>(value);
  const double rounded = nearest < 0 ? -double{nearest} : double{nearest};
  const double exact = value < 0 ? -value : value;
  const auto bits = BitsAs<uint32_t>(nearest);
  if (rounded == exact || (bits & 1) != 0) return nearest;
  // From infinity back to the largest number.
  return BitsAs<float>(rounded > exact ? bits - 1 : bits + 1);
}

SLUICE_HOST_DEVICE double ToF64(float value) {
  if (!IsNaN(value)) return value;
  const auto bits = BitsAs<uint32_t>(value);
  const uint64_t sign = uint64_t{bits & 0x80000000u} << 32;
  const uint64_t payload = uint64_t{(bits & 0x007FFFFFu) | kF32Quiet} << kF64Dropped;
  return BitsAs<double>(sign | (uint64_t{0x7FF} << 52) | payload);
}

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_CAST_H_
