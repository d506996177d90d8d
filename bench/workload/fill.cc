// Two hashes, and values of them in each element type.
#include "workload/fill.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <type_traits>

#include "tensor/check.h"
#include "workload/element.h"

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

// A loop that the compiler can vectorise: the modulus is a constant and nothing is carried over.
template <typename Codec, uint32_t Modulus>
void EncodeRun(const uint32_t* hashes, int64_t count, std::byte* dst) {
  auto* out = reinterpret_cast<typename Codec::Unit*>(dst);
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<int32_t>(hashes[i] % Modulus);
    if constexpr (std::is_same_v<typename Codec::Wide, float> && sizeof(*out) < sizeof(float)) {
      out[i] = Codec::StoreWhole(value);
    } else {
      out[i] = Codec::Store(value);
    }
  }
}

using EncodeFunction = void (*)(const uint32_t*, int64_t, std::byte*);

template <typename Codec>
EncodeFunction ChooseModulus(uint32_t modulus) {
  switch (modulus) {
    case 65521:
      return &EncodeRun<Codec, 65521>;
    case 2039:
      return &EncodeRun<Codec, 2039>;
    case 251:
      return &EncodeRun<Codec, 251>;
    case 127:
      return &EncodeRun<Codec, 127>;
    case 13:
      return &EncodeRun<Codec, 13>;
    case 7:
      return &EncodeRun<Codec, 7>;
    case 2:
      return &EncodeRun<Codec, 2>;
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
  return WithCodec(dtype, [&](auto codec) { return ChooseModulus<decltype(codec)>(modulus); });
}

}  // namespace sluice::bench
