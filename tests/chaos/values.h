// What every element of a random job must be: a hash of all that tells it from any other one.
#ifndef SLUICE_TESTS_CHAOS_VALUES_H_
#define SLUICE_TESTS_CHAOS_VALUES_H_

#include <cstdint>
#include <cstring>

#include "sluice/tensor.h"

namespace sluice::chaos {

inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

inline uint64_t Mix(uint64_t a, uint64_t b) { return Mix(Mix(a) ^ (b * 0xd6e8feb86659fd93)); }

// Whole numbers below this are exact in `dtype`.
inline int64_t ExactBelow(DType dtype) {
  switch (dtype) {
    case DType::kU8:
    case DType::kBF16:
      return 256;
    default:
      return int64_t{1} << 20;
  }
}

// Writes a whole number that is exact in `dtype`.
inline void Encode(int64_t value, DType dtype, std::byte* into) {
  const auto put = [into](auto typed) { std::memcpy(into, &typed, sizeof(typed)); };
  const float real = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &real, sizeof(bits));
  switch (dtype) {
    case DType::kF64:
      return put(static_cast<double>(value));
    case DType::kF32:
      return put(real);
    case DType::kBF16:
      return put(static_cast<uint16_t>(bits >> 16));
    case DType::kI64:
      return put(value);
    case DType::kI32:
      return put(static_cast<int32_t>(value));
    default:
      return put(static_cast<uint8_t>(value));
  }
}

}  // namespace sluice::chaos

#endif  // SLUICE_TESTS_CHAOS_VALUES_H_
