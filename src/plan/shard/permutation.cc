// A balanced Feistel network over the smallest even number of bits, walked until it hits a value:
// J. Black and P. Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, section 5.
#include "plan/shard/permutation.h"

#include "tensor/check.h"
#include "tensor/mix_bits.h"

namespace sluice {
namespace {

constexpr int kRounds = 6;

uint64_t Scramble(uint64_t key, int round, uint64_t half) {
  return MixBits(key + static_cast<uint64_t>(round) * 0xD1B54A32D192ED03u + half);
}

}  // namespace

Permutation::Permutation(int64_t values) : values_(values) {
  SLUICE_CHECK(values >= 1, "a permutation of nothing");
  while (half_bits_ < 31 && (uint64_t{1} << (2 * half_bits_)) < static_cast<uint64_t>(values)) {
    ++half_bits_;
  }
  SLUICE_CHECK((uint64_t{1} << (2 * half_bits_)) >= static_cast<uint64_t>(values),
               "too many values to permute");
}

// At most four times as many values as there should be (four of one), so the walks are short.
int64_t Permutation::At(int64_t place, uint64_t key) const {
  uint64_t value = static_cast<uint64_t>(place);
  do {
    value = Forward(value, key);
  } while (value >= static_cast<uint64_t>(values_));
  return static_cast<int64_t>(value);
}

int64_t Permutation::PlaceOf(int64_t value, uint64_t key) const {
  uint64_t place = static_cast<uint64_t>(value);
  do {
    place = Backward(place, key);
  } while (place >= static_cast<uint64_t>(values_));
  return static_cast<int64_t>(place);
}

uint64_t Permutation::Forward(uint64_t value, uint64_t key) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t next = left ^ (Scramble(key, round, right) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

uint64_t Permutation::Backward(uint64_t value, uint64_t key) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (int round = kRounds; round-- > 0;) {
    const uint64_t before = right ^ (Scramble(key, round, left) & mask);
    right = left;
    left = before;
  }
  return (left << half_bits_) | right;
}

}  // namespace sluice
