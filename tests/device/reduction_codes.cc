// Codes by the format of their type.
#include "device/reduction_codes.h"

#include <cmath>

#include "device/float_oracle.h"
#include "tensor/cast.h"

namespace sluice {
namespace {

uint64_t RandomCode(DType dtype, std::mt19937_64& random) {
  const uint64_t bits = random() >> (64 - 8 * DTypeBytes(dtype));
  if (!IsFloating(dtype) || (random() & 1) != 0) return bits;
  return Encode(dtype, std::ldexp(static_cast<double>(random() % 4096) - 2048, -8));
}

}  // namespace

std::vector<uint64_t> RandomCodes(DType dtype, size_t count, std::mt19937_64& random) {
  std::vector<uint64_t> codes(count);
  for (uint64_t& code : codes) code = RandomCode(dtype, random);
  return codes;
}

std::vector<uint64_t> SpecialCodes(DType dtype) {
  const auto bits = static_cast<int>(8 * DTypeBytes(dtype));
  const uint64_t sign = uint64_t{1} << (bits - 1);
  std::vector<uint64_t> codes = {0, 1, 2, sign - 1, sign - 2};
  if (IsFloating(dtype)) {
    const FloatFormat format = FormatOf(dtype);
    for (const uint64_t code :
         {format.special(), format.special() - 1, format.mantissa_mask(),
          format.mantissa_mask() + 1, Encode(dtype, 1), Encode(dtype, 3), Encode(dtype, 0.1)}) {
      codes.push_back(code);
    }
    if (format.infinities) codes.push_back(format.special() + 1);  // a signaling NaN
  }
  const size_t positive = codes.size();
  for (size_t i = 0; i < positive; ++i) codes.push_back(codes[i] | sign);
  return codes;
}

}  // namespace sluice
