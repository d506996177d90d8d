// Elements of each dtype as plain numbers, one at a time: the benchmark's own reading of the
// formats.
//
// A codec has a Unit, which is the element in memory. It has a Wide number type that holds every
// one of its values. Load(Unit) gives a number, and Store(number) rounds to nearest even; integers
// wrap.
#ifndef SLUICE_BENCH_WORKLOAD_ELEMENT_H_
#define SLUICE_BENCH_WORKLOAD_ELEMENT_H_

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "sluice/tensor.h"

namespace sluice::bench {

// An IEEE-like binary float with a sign, `Exponent` and `Mantissa` bits. `Finite`: no infinity, the
// largest exponent holds numbers too, and only all ones is not one (f8e4m3 of the OCP FP8 formats).
// What overflows becomes the largest number then.
template <typename Bits, int Exponent, int Mantissa, bool Finite = false>
struct SmallFloat {
  using Unit = Bits;
  using Wide = float;

  static float Load(Unit bits) {
    const uint32_t sign = static_cast<uint32_t>(bits >> (Exponent + Mantissa)) << 31;
    const uint32_t magnitude = bits & kMagnitude;
    if (magnitude > kLargest) {
      const bool infinite = !Finite && magnitude == kLargest + 1;
      return std::bit_cast<float>(sign | (infinite ? 0x7f800000u : 0x7fc00000u));
    }
    if (magnitude < (1u << Mantissa)) {  // subnormal: a whole number of the smallest steps
      const float value = static_cast<float>(magnitude) * std::bit_cast<float>(kStepBits);
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude + kRebias) << (23 - Mantissa)));
  }

  // Rounds once, also from double.
  template <typename Number>
  static Unit Store(Number value) {
    using Word = std::conditional_t<sizeof(Number) == 8, uint64_t, uint32_t>;
    constexpr int kDigits = std::numeric_limits<Number>::digits - 1;
    constexpr int kBits = static_cast<int>(sizeof(Number)) * 8;
    constexpr int kShift = kDigits - Mantissa;
    constexpr Word kBias = (Word{1} << (kBits - 2 - kDigits)) - 1;
    const auto word = std::bit_cast<Word>(value);
    const auto sign = static_cast<Unit>((word >> (kBits - 1)) << (Exponent + Mantissa));
    const Word magnitude = word & (~Word{0} >> 1);
    if (magnitude > std::bit_cast<Word>(std::numeric_limits<Number>::infinity())) return kNan;
    constexpr Word kFirstNormal = (kBias + 1 - kFormatBias) << kDigits;
    if (magnitude < kFirstNormal) {
      // Adding a number whose last bit is worth one smallest step makes the hardware round.
      constexpr Word kRounder = (kBias + 1 - kFormatBias + kShift) << kDigits;
      const Number sum = std::bit_cast<Number>(magnitude) + std::bit_cast<Number>(kRounder);
      return static_cast<Unit>(sign | (std::bit_cast<Word>(sum) - kRounder));
    }
    const Word odd = (magnitude >> kShift) & 1;
    const Word rounded = (magnitude + (Word{1} << (kShift - 1)) - 1 + odd) >> kShift;
    const Word small = rounded - ((kBias - kFormatBias) << Mantissa);
    if (small > kLargest) return static_cast<Unit>(sign | (Finite ? kLargest : kLargest + 1));
    return static_cast<Unit>(sign | small);
  }

  // A whole number from 0 on that the format has: the bits of its f32, cut and with another
  // exponent bias. A loop over these can be vectorised.
  static Unit StoreWhole(int32_t value) {
    const auto wide = std::bit_cast<uint32_t>(static_cast<float>(value));
    return static_cast<Unit>(value == 0 ? 0 : (wide >> (23 - Mantissa)) - kRebias);
  }

 private:
  static constexpr int kFormatBias = (1 << (Exponent - 1)) - 1;
  static constexpr uint32_t kMagnitude = (1u << (Exponent + Mantissa)) - 1;
  static constexpr uint32_t kLargest = Finite ? kMagnitude - 1 : kMagnitude - (1u << Mantissa);
  static constexpr Unit kNan =
      static_cast<Unit>(Finite ? kMagnitude : kMagnitude - (1u << (Mantissa - 1)) + 1);
  static constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kFormatBias) << Mantissa;
  // 2^(1 - bias - Mantissa), as a float; subnormal itself for bf16.
  static constexpr int kStepExponent = 127 + 1 - kFormatBias - Mantissa;
  static constexpr uint32_t kStepBits = kStepExponent > 0
                                            ? static_cast<uint32_t>(kStepExponent) << 23
                                            : 1u << (22 + kStepExponent);
};

template <typename Number>
struct PlainNumber {
  using Unit = Number;
  // u64 alone has values that no int64_t holds.
  using Integer = std::conditional_t<std::is_same_v<Number, uint64_t>, uint64_t, int64_t>;
  using Wide = std::conditional_t<std::is_floating_point_v<Number>, Number, Integer>;
  static Wide Load(Unit value) { return static_cast<Wide>(value); }
  template <typename Other>
  static Unit Store(Other value) {
    return static_cast<Unit>(value);
  }
};

// 16 bytes that only move: a number, and its complement so that each byte counts.
struct PairNumber {
  struct Unit {
    uint64_t number;
    uint64_t complement;
  };
  using Wide = uint64_t;
  static Wide Load(Unit value) {
    return value.complement == ~value.number ? value.number : ~value.number;
  }
  template <typename Other>
  static Unit Store(Other value) {
    return {static_cast<uint64_t>(value), ~static_cast<uint64_t>(value)};
  }
};

using F16 = SmallFloat<uint16_t, 5, 10>;
using BF16 = SmallFloat<uint16_t, 8, 7>;
using F8E4M3 = SmallFloat<uint8_t, 4, 3, true>;
using F8E5M2 = SmallFloat<uint8_t, 5, 2>;

// Calls `visit` with the codec of `dtype`, and returns what it returns.
template <typename Visit>
auto WithCodec(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kF64:
      return visit(PlainNumber<double>());
    case DType::kF32:
      return visit(PlainNumber<float>());
    case DType::kF16:
      return visit(F16());
    case DType::kBF16:
      return visit(BF16());
    case DType::kF8E4M3:
      return visit(F8E4M3());
    case DType::kF8E5M2:
      return visit(F8E5M2());
    case DType::kI64:
      return visit(PlainNumber<int64_t>());
    case DType::kI32:
      return visit(PlainNumber<int32_t>());
    case DType::kI8:
      return visit(PlainNumber<int8_t>());
    case DType::kU8:
      return visit(PlainNumber<uint8_t>());
    case DType::kI16:
      return visit(PlainNumber<int16_t>());
    case DType::kU16:
      return visit(PlainNumber<uint16_t>());
    case DType::kU32:
      return visit(PlainNumber<uint32_t>());
    case DType::kU64:
      return visit(PlainNumber<uint64_t>());
    case DType::kBool:
      return visit(PlainNumber<uint8_t>());  // what is neither 0 nor 1 has to show
    case DType::kF8E8M0:
    case DType::kF4E2M1x2:
    case DType::kI4x2:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2Fnuz:
      return visit(PlainNumber<uint8_t>());  // opaque ones: their bits
    case DType::kC64:
      return visit(PlainNumber<uint64_t>());
    case DType::kC128:
      return visit(PairNumber());
  }
  std::abort();  // there is no other dtype
}

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_ELEMENT_H_
