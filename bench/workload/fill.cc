// Encoding fill values in each element type.
#include "workload/fill.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tensor/check.h"

namespace sluice::bench {
namespace {

constexpr uint32_t kMultiplier = 2654435761;

// A small whole number as a binary float of `Bits` with `Mantissa` stored bits: the bits of its
// f32, cut and with another exponent bias. Exact while the number fits the mantissa.
template <typename Bits, int Mantissa, int Bias>
struct SmallFloat {
  using Unit = Bits;
  static Unit Encode(uint32_t value) {
    const auto wide = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(value)));
    constexpr uint32_t kRebias = uint32_t{127 - Bias} << Mantissa;
    const uint32_t bits = (wide >> (23 - Mantissa)) - kRebias;
    return static_cast<Unit>(value == 0 ? 0 : bits);
  }
};

template <typename Number>
struct Plain {
  using Unit = Number;
  static Unit Encode(uint32_t value) { return static_cast<Unit>(static_cast<int32_t>(value)); }
};

// A loop that the compiler can vectorise: the modulus is a constant and nothing is carried over.
template <typename Encoder, uint32_t Modulus>
void WriteRun(uint32_t first, uint32_t offset, int64_t count, std::byte* dst) {
  using Unit = typename Encoder::Unit;
  auto* out = reinterpret_cast<Unit*>(dst);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t hash = (first + static_cast<uint32_t>(i)) * kMultiplier + offset;
    out[i] = Encoder::Encode(hash % Modulus);
  }
}

using WriteFunction = void (*)(uint32_t, uint32_t, int64_t, std::byte*);

template <typename Encoder>
WriteFunction ChooseModulus(uint32_t modulus) {
  switch (modulus) {
    case 65521:
      return &WriteRun<Encoder, 65521>;
    case 2039:
      return &WriteRun<Encoder, 2039>;
    case 251:
      return &WriteRun<Encoder, 251>;
    case 127:
      return &WriteRun<Encoder, 127>;
    case 13:
      return &WriteRun<Encoder, 13>;
    case 7:
      return &WriteRun<Encoder, 7>;
    case 2:
      return &WriteRun<Encoder, 2>;
    default:
      return nullptr;
  }
}

}  // namespace

uint32_t FillModulus(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kF32:
    case DType::kI64:
    case DType::kI32:
    case DType::kU64:
    case DType::kU32:
      return 65521;
    case DType::kF16:
      return 2039;
    case DType::kBF16:
    case DType::kU8:
      return 251;
    case DType::kI8:
    case DType::kI16:
    case DType::kU16:
      return 127;
    case DType::kF8E4M3:
      return 13;
    case DType::kF8E5M2:
      return 7;
    case DType::kBool:
      return 2;
  }
  SLUICE_CHECK(false, "unknown dtype");
}

uint32_t FillModulus(const TransferSpec& spec) {
  uint32_t modulus = FillModulus(DType::kF64);
  for (const TensorTransfer& tensor : spec.tensors) {
    modulus = std::min({modulus, FillModulus(tensor.src_dtype), FillModulus(tensor.dst_dtype)});
  }
  return modulus;
}

uint32_t FillValue(int64_t g, int64_t seed, uint32_t modulus) {
  const uint64_t index = static_cast<uint64_t>(g) + static_cast<uint64_t>(seed);
  return static_cast<uint32_t>(index) * kMultiplier % modulus;
}

Filler::Filler(DType dtype, uint32_t modulus, int64_t seed, uint32_t offset)
    : Values(dtype),
      seed_(static_cast<uint64_t>(seed)),
      offset_(offset),
      write_(Choose(dtype, modulus)) {
  SLUICE_CHECK(write_ != nullptr, "unknown modulus");
}

Filler::WriteFunction Filler::Choose(DType dtype, uint32_t modulus) {
  switch (dtype) {
    case DType::kF64:
      return ChooseModulus<Plain<double>>(modulus);
    case DType::kF32:
      return ChooseModulus<Plain<float>>(modulus);
    case DType::kF16:
      return ChooseModulus<SmallFloat<uint16_t, 10, 15>>(modulus);
    case DType::kBF16:
      return ChooseModulus<SmallFloat<uint16_t, 7, 127>>(modulus);
    case DType::kF8E4M3:
      return ChooseModulus<SmallFloat<uint8_t, 3, 7>>(modulus);
    case DType::kF8E5M2:
      return ChooseModulus<SmallFloat<uint8_t, 2, 15>>(modulus);
    case DType::kI64:
      return ChooseModulus<Plain<int64_t>>(modulus);
    case DType::kI32:
      return ChooseModulus<Plain<int32_t>>(modulus);
    case DType::kI8:
      return ChooseModulus<Plain<int8_t>>(modulus);
    case DType::kU8:
      return ChooseModulus<Plain<uint8_t>>(modulus);
    case DType::kI16:
      return ChooseModulus<Plain<int16_t>>(modulus);
    case DType::kU16:
      return ChooseModulus<Plain<uint16_t>>(modulus);
    case DType::kU32:
      return ChooseModulus<Plain<uint32_t>>(modulus);
    case DType::kU64:
      return ChooseModulus<Plain<uint64_t>>(modulus);
    case DType::kBool:
      return ChooseModulus<Plain<uint8_t>>(modulus);
  }
  return nullptr;
}

}  // namespace sluice::bench
