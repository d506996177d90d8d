// Adding up what a rank holds.
#include "workload/fingerprint.h"

#include <bit>
#include <cmath>

#include "tensor/check.h"

namespace sluice::bench {
namespace {

int64_t ToInteger(double value) {
  if (!(std::fabs(value) < 9.2e18)) return 0;
  return static_cast<int64_t>(value);
}

// A binary float with sign, `Exponent` and `Mantissa` bits. `Finite`: the largest exponent holds
// numbers too, and only all ones is not one (f8e4m3 of the OCP FP8 formats).
template <typename Bits, int Exponent, int Mantissa, bool Finite = false>
struct SmallFloat {
  using Unit = Bits;
  static int64_t Decode(Unit bits) {
    constexpr int kBias = (1 << (Exponent - 1)) - 1;
    constexpr int kTop = (1 << Exponent) - 1;
    const int mantissa = bits & ((1 << Mantissa) - 1);
    const int exponent = (bits >> Mantissa) & kTop;
    if (exponent == kTop && (!Finite || mantissa == (1 << Mantissa) - 1)) return 0;
    const int scale = (exponent == 0 ? 1 : exponent) - kBias - Mantissa;
    const int significand = exponent == 0 ? mantissa : mantissa + (1 << Mantissa);
    const double magnitude = std::ldexp(significand, scale);
    return ToInteger((bits >> (Exponent + Mantissa)) != 0 ? -magnitude : magnitude);
  }
};

template <typename Number>
struct Plain {
  using Unit = Number;
  static int64_t Decode(Unit value) {
    if constexpr (std::is_floating_point_v<Unit>) {
      return ToInteger(static_cast<double>(value));
    } else {
      return static_cast<int64_t>(value);
    }
  }
};

template <typename Decoder>
void Sum(const std::byte* data, int64_t count, Fingerprint* result) {
  const auto* values = reinterpret_cast<const typename Decoder::Unit*>(data);
  uint64_t plain = 0;
  uint64_t ordered = 0;
  for (int64_t p = 0; p < count; ++p) {
    const auto value = static_cast<uint64_t>(Decoder::Decode(values[p]));
    plain += value;
    ordered += (static_cast<uint64_t>(p) + 1) * value;
  }
  result->checksum = static_cast<int64_t>(plain);
  result->ordered_checksum = ordered;
}

void SumAs(DType dtype, const std::byte* data, int64_t count, Fingerprint* result) {
  switch (dtype) {
    case DType::kF64:
      return Sum<Plain<double>>(data, count, result);
    case DType::kF32:
      return Sum<Plain<float>>(data, count, result);
    case DType::kF16:
      return Sum<SmallFloat<uint16_t, 5, 10>>(data, count, result);
    case DType::kBF16:
      return Sum<SmallFloat<uint16_t, 8, 7>>(data, count, result);
    case DType::kF8E4M3:
      return Sum<SmallFloat<uint8_t, 4, 3, true>>(data, count, result);
    case DType::kF8E5M2:
      return Sum<SmallFloat<uint8_t, 5, 2>>(data, count, result);
    case DType::kI64:
      return Sum<Plain<int64_t>>(data, count, result);
    case DType::kI32:
      return Sum<Plain<int32_t>>(data, count, result);
    case DType::kI8:
      return Sum<Plain<int8_t>>(data, count, result);
    case DType::kU8:
      return Sum<Plain<uint8_t>>(data, count, result);
  }
  SLUICE_CHECK(false, "unknown dtype");
}

}  // namespace

Fingerprint TakeFingerprint(const LocalPart& part, DType dtype, const std::byte* data) {
  Fingerprint result;
  result.local_shape = part.shape();
  result.first = part.first();
  result.last = part.last();
  SumAs(dtype, data, part.elements(), &result);
  return result;
}

}  // namespace sluice::bench
