// Formats taken apart and put together by arithmetic on doubles, in which all values are exact.
#include "device/float_oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

namespace sluice {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// std::ldexp, which is a slow call: almost all powers of two are doubles, and such a product is
// rounded once.
double Scaled(double value, int exponent) {
  constexpr int kBias = 1023;
  if (exponent < 1 - kBias || exponent > kBias) return std::ldexp(value, exponent);
  return value * std::bit_cast<double>(static_cast<uint64_t>(exponent + kBias) << 52);
}

// std::ilogb of a positive number, which is a slow call, too.
int Exponent(double value) {
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(value) >> 52);
  return exponent > 0 ? exponent - 1023 : std::ilogb(value);
}

// Quiet, with the sign and the leading bits of the payload.
uint64_t CastNaN(DType from, DType to, uint64_t code) {
  const FloatFormat narrow = FormatOf(from);
  const FloatFormat wide = FormatOf(to);
  const uint64_t sign = (code & narrow.sign()) != 0 ? wide.sign() : 0;
  if (!wide.infinities) return sign | wide.special();
  uint64_t payload = code & narrow.mantissa_mask();
  const int more = wide.mantissa_bits - narrow.mantissa_bits;
  payload = more >= 0 ? payload << more : payload >> -more;
  const uint64_t quiet = uint64_t{1} << (wide.mantissa_bits - 1);
  return sign | wide.special() | quiet | payload;
}

// In the arithmetic that T has.
template <typename T>
T Apply(ReduceOp op, T dst, T src) {
  if (std::isnan(dst) || std::isnan(src)) return static_cast<T>(kNaN);
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return dst + src;
    case ReduceOp::kMax:
      return src > dst ? src : dst;
    case ReduceOp::kMin:
      return src < dst ? src : dst;
    case ReduceOp::kProduct:
      return dst * src;
  }
  std::abort();
}

// The one NaN that reductions give, or the value.
uint64_t EncodeResult(DType dtype, double value) {
  if (!std::isnan(value)) return Encode(dtype, value);
  const FloatFormat format = FormatOf(dtype);
  if (!format.infinities) return format.special();
  return format.special() | (uint64_t{1} << (format.mantissa_bits - 1));
}

template <typename T>
uint64_t ReduceFloats(const Reduction& reduction, uint64_t dst, uint64_t src) {
  const DType dtype = reduction.dtype;
  const uint64_t once = EncodeResult(dtype, Apply(reduction.op, static_cast<T>(Decode(dtype, dst)),
                                                  static_cast<T>(Decode(dtype, src))));
  if (reduction.divisor <= 1) return once;
  return EncodeResult(dtype,
                      static_cast<T>(Decode(dtype, once)) / static_cast<T>(reduction.divisor));
}

bool IsUnsigned(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kU16 || dtype == DType::kU32 ||
         dtype == DType::kU64;
}

// The value of an integer code, its sign extended. For u64 a value mod 2^64.
int64_t AsInteger(DType dtype, uint64_t code) {
  const auto spare = static_cast<int>(64 - 8 * DTypeBytes(dtype));
  if (IsUnsigned(dtype)) return static_cast<int64_t>(code);
  return static_cast<int64_t>(code << spare) >> spare;
}

uint64_t ReduceIntegers(const Reduction& reduction, uint64_t dst, uint64_t src) {
  const DType dtype = reduction.dtype;
  const uint64_t mask = ~uint64_t{0} >> (64 - 8 * DTypeBytes(dtype));
  const int64_t left = AsInteger(dtype, dst);
  const int64_t right = AsInteger(dtype, src);
  uint64_t once = 0;
  switch (reduction.op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      once = dst + src;
      break;
    case ReduceOp::kMax:
      once = IsUnsigned(dtype) ? std::max(dst, src) : static_cast<uint64_t>(std::max(left, right));
      break;
    case ReduceOp::kMin:
      once = IsUnsigned(dtype) ? std::min(dst, src) : static_cast<uint64_t>(std::min(left, right));
      break;
    case ReduceOp::kProduct:
      once = dst * src;
      break;
  }
  once &= mask;
  if (reduction.divisor <= 1) return once;
  if (IsUnsigned(dtype)) return once / static_cast<uint64_t>(reduction.divisor);
  return static_cast<uint64_t>(AsInteger(dtype, once) / reduction.divisor) & mask;
}

}  // namespace

double Decode(DType dtype, uint64_t code) {
  const FloatFormat format = FormatOf(dtype);
  const uint64_t magnitude = code & (format.sign() - 1);
  const double sign = (code & format.sign()) != 0 ? -1 : 1;
  if (format.IsNaN(code)) return kNaN;
  if (format.infinities && magnitude == format.special()) return sign * kInfinity;
  const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  auto mantissa = static_cast<double>(magnitude & format.mantissa_mask());
  if (exponent > 0) mantissa += Scaled(1, format.mantissa_bits);
  return sign * Scaled(mantissa, std::max(exponent, 1) - format.bias() - format.mantissa_bits);
}

uint64_t Encode(DType dtype, double value) {
  const FloatFormat format = FormatOf(dtype);
  const uint64_t sign = std::signbit(value) ? format.sign() : 0;
  value = std::abs(value);
  if (value == 0) return sign;
  const uint64_t overflow = format.infinities ? format.special() : format.special() - 1;
  if (std::isinf(value)) return sign | overflow;
  const int exponent = std::max(Exponent(value), 1 - format.bias());
  // In units of the last bit; the program runs with rounding to nearest even.
  const double units = std::nearbyint(Scaled(value, format.mantissa_bits - exponent));
  const uint64_t code =
      (static_cast<uint64_t>(exponent + format.bias() - 1) << format.mantissa_bits) +
      static_cast<uint64_t>(units);
  return sign | std::min(code, overflow);
}

uint64_t CastCode(DType from, DType to, uint64_t code) {
  if (from == to) return code;
  if (FormatOf(from).IsNaN(code)) return CastNaN(from, to, code);
  return Encode(to, Decode(from, code));
}

uint64_t ReduceCodes(const Reduction& reduction, uint64_t dst, uint64_t src) {
  switch (reduction.dtype) {
    case DType::kI64:
    case DType::kI32:
    case DType::kI8:
    case DType::kU8:
    case DType::kI16:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return ReduceIntegers(reduction, dst, src);
    case DType::kF64:
      return ReduceFloats<double>(reduction, dst, src);
    default:
      return ReduceFloats<float>(reduction, dst, src);
  }
}

static_assert(std::endian::native == std::endian::little);

uint64_t LoadCode(const std::byte* at, DType dtype) {
  uint64_t code = 0;
  std::memcpy(&code, at, static_cast<size_t>(DTypeBytes(dtype)));
  return code;
}

void StoreCode(uint64_t code, DType dtype, std::byte* at) {
  std::memcpy(at, &code, static_cast<size_t>(DTypeBytes(dtype)));
}

std::vector<std::byte> StoreCodes(const std::vector<uint64_t>& codes, DType dtype) {
  const auto bytes = static_cast<size_t>(DTypeBytes(dtype));
  std::vector<std::byte> memory(codes.size() * bytes);
  for (size_t i = 0; i < codes.size(); ++i) StoreCode(codes[i], dtype, memory.data() + i * bytes);
  return memory;
}

}  // namespace sluice
