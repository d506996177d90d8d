// Codes by the format of their type.
#include "device/reduction_codes.h"

#include <cmath>

#include "device/float_oracle.h"
#include "device/reduction.h"
#include "tensor/cast.h"

namespace sluice {
namespace {

constexpr size_t kGuardBytes = 64;
constexpr std::byte kUntouched{0xA5};

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

uint64_t ReducedCode(const ReductionCase& how, const CodeRows& rows, size_t i) {
  uint64_t code = rows[0][i];
  for (size_t row = 1; row < rows.size(); ++row) {
    const int64_t divisor = row + 1 == rows.size() ? how.divisor : 1;
    code = ReduceCodes({how.op, how.dtype, nullptr, nullptr, 0, divisor}, code, rows[row][i]);
  }
  return code;
}

testing::AssertionResult ReducesAsTheOracle(const ReductionCase& how, const CodeRows& rows,
                                            size_t shift, const RowReducer& reduce) {
  const auto bytes = static_cast<size_t>(DTypeBytes(how.dtype));
  const size_t length = rows[0].size();
  std::vector<std::vector<std::byte>> memory;
  std::vector<const std::byte*> sources;
  for (const auto& row : rows) {
    const size_t begin = (shift + memory.size() * 5) % 13;
    memory.emplace_back(begin + length * bytes);
    for (size_t i = 0; i < length; ++i) {
      StoreCode(row[i], how.dtype, memory.back().data() + begin + i * bytes);
    }
    sources.push_back(memory.back().data() + begin);
  }
  std::vector<std::byte> to(3 * kGuardBytes + shift + length * bytes, kUntouched);
  std::byte* const line =
      to.data() + kGuardBytes + -reinterpret_cast<uintptr_t>(to.data()) % kGuardBytes;
  std::byte* const dst = line + shift;
  std::vector<std::byte> expected = to;
  std::vector<uint64_t> wanted;
  for (size_t i = 0; i < length; ++i) {
    wanted.push_back(ReducedCode(how, rows, i));
    StoreCode(wanted[i], how.dtype, expected.data() + (dst - to.data()) + i * bytes);
  }
  reduce(sources, dst);
  for (size_t i = 0; i < length; ++i) {
    const uint64_t got = LoadCode(dst + i * bytes, how.dtype);
    if (got == wanted[i]) continue;
    return testing::AssertionFailure()
           << DTypeName(how.dtype) << ", op " << static_cast<int>(how.op) << ", divisor "
           << how.divisor << ", element " << i << " of " << length << " from " << rows.size()
           << " sources, of which the first has " << std::hex << rows[0][i] << ", gave " << got
           << ", not " << wanted[i];
  }
  if (to == expected) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "wrote outside its row";
}

}  // namespace sluice
