// Two hashes, and encoding values in each element type.
#include "workload/fill.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "tensor/check.h"

namespace sluice::bench {
namespace {

constexpr uint32_t kMultiplier = 2654435761;
constexpr uint32_t kContributionStep = 40503;

// Hashes of one block stay in the first-level cache.
constexpr int64_t kBlockElements = 1024;

// A bijection whose every output bit depends on every input bit (the finalizer of SplitMix64).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// FNV-1a.
uint64_t HashOfText(absl::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

// These loops carry nothing over, so that the compiler can vectorise them.
void WritePlain(uint32_t first, uint32_t offset, int64_t count, uint32_t* hashes) {
  for (int64_t i = 0; i < count; ++i) {
    hashes[i] = (first + static_cast<uint32_t>(i)) * kMultiplier + offset;
  }
}

// Of elements whose indices have one high half, which `salt` comes from.
void WriteMixed(uint64_t salt, uint32_t first, int64_t count, uint32_t* hashes) {
  const auto low = static_cast<uint32_t>(salt);
  const auto high = static_cast<uint32_t>(salt >> 32);
  for (int64_t i = 0; i < count; ++i) {
    uint32_t hash = ((first + static_cast<uint32_t>(i)) ^ low) * kMultiplier;
    hash = ((hash ^ (hash >> 15)) + high) * 2246822519u;
    hashes[i] = hash ^ (hash >> 13);
  }
}

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

// A number of 64 bits, and its complement: see PairNumber of element.h.
struct Pair {
  struct Unit {
    uint64_t number;
    uint64_t complement;
  };
  static Unit Encode(uint32_t value) { return {value, ~uint64_t{value}}; }
};

// A loop that the compiler can vectorise: the modulus is a constant and nothing is carried over.
template <typename Encoder, uint32_t Modulus>
void EncodeRun(const uint32_t* hashes, int64_t count, std::byte* dst) {
  using Unit = typename Encoder::Unit;
  auto* out = reinterpret_cast<Unit*>(dst);
  for (int64_t i = 0; i < count; ++i) out[i] = Encoder::Encode(hashes[i] % Modulus);
}

using EncodeFunction = void (*)(const uint32_t*, int64_t, std::byte*);

template <typename Encoder>
EncodeFunction ChooseModulus(uint32_t modulus) {
  switch (modulus) {
    case 65521:
      return &EncodeRun<Encoder, 65521>;
    case 2039:
      return &EncodeRun<Encoder, 2039>;
    case 251:
      return &EncodeRun<Encoder, 251>;
    case 127:
      return &EncodeRun<Encoder, 127>;
    case 13:
      return &EncodeRun<Encoder, 13>;
    case 7:
      return &EncodeRun<Encoder, 7>;
    case 2:
      return &EncodeRun<Encoder, 2>;
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
    case DType::kC64:
    case DType::kC128:
      return 65521;
    case DType::kF16:
      return 2039;
    case DType::kBF16:
    case DType::kU8:
    case DType::kF8E8M0:
    case DType::kF4E2M1x2:
    case DType::kI4x2:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2Fnuz:
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
  std::abort();  // there is no other dtype
}

uint32_t FillModulus(const TransferSpec& spec) {
  uint32_t modulus = FillModulus(DType::kF64);
  for (const TensorTransfer& tensor : spec.tensors) {
    modulus = std::min({modulus, FillModulus(tensor.src_dtype), FillModulus(tensor.dst_dtype)});
  }
  return modulus;
}

ElementHash ElementHash::Plain(int64_t seed, int q) {
  return {false, static_cast<uint64_t>(seed), static_cast<uint32_t>(q) * kContributionStep};
}

ElementHash ElementHash::Mixed(absl::string_view tensor, int64_t seed, int q) {
  const uint64_t key = Mix(HashOfText(tensor) + static_cast<uint64_t>(seed));
  return {true, Mix(key + static_cast<uint64_t>(int64_t{q} + 1)), 0};
}

void ElementHash::Write(int64_t g, int64_t count, uint32_t* hashes) const {
  if (!mixed_) {
    return WritePlain(static_cast<uint32_t>(static_cast<uint64_t>(g) + key_), offset_, count,
                      hashes);
  }
  while (count > 0) {
    const auto index = static_cast<uint64_t>(g);
    const auto first = static_cast<uint32_t>(index);
    const int64_t now = std::min<int64_t>(count, (int64_t{1} << 32) - int64_t{first});
    WriteMixed(Mix(key_ + (index >> 32)), first, now, hashes);
    g += now;
    count -= now;
    hashes += now;
  }
}

ElementHash Fill::HashOf(absl::string_view tensor) const {
  return mixed ? ElementHash::Mixed(tensor, seed) : ElementHash::Plain(seed);
}

ElementHash Fill::HashOfContribution(absl::string_view tensor, int q) const {
  return mixed ? ElementHash::Mixed(tensor, seed, q) : ElementHash::Plain(seed, q);
}

uint32_t FillValue(int64_t g, int64_t seed, uint32_t modulus) {
  const uint64_t index = static_cast<uint64_t>(g) + static_cast<uint64_t>(seed);
  return static_cast<uint32_t>(index) * kMultiplier % modulus;
}

Filler::Filler(DType dtype, uint32_t modulus, const ElementHash& hash)
    : Values(dtype), hash_(hash), encode_(Choose(dtype, modulus)) {
  SLUICE_CHECK(encode_ != nullptr, "unknown modulus");
}

void Filler::Write(int64_t g, int64_t count, std::byte* dst) const {
  std::array<uint32_t, kBlockElements> hashes;
  while (count > 0) {
    const int64_t now = std::min(count, kBlockElements);
    hash_.Write(g, now, hashes.data());
    encode_(hashes.data(), now, dst);
    g += now;
    count -= now;
    dst += now * DTypeBytes(dtype());
  }
}

Filler::EncodeFunction Filler::Choose(DType dtype, uint32_t modulus) {
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
    case DType::kF8E8M0:
    case DType::kF4E2M1x2:
    case DType::kI4x2:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2Fnuz:
      return ChooseModulus<Plain<uint8_t>>(modulus);
    case DType::kC64:
      return ChooseModulus<Plain<uint64_t>>(modulus);
    case DType::kC128:
      return ChooseModulus<Pair>(modulus);
  }
  return nullptr;
}

}  // namespace sluice::bench
