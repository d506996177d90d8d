// A balanced Feistel network over the smallest even number of bits, walked until it hits an item:
// J. Black and P. Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, section 5.
#include "plan/shard/epoch_order.h"

#include "tensor/check.h"

namespace sluice {
namespace {

constexpr int kRounds = 6;

// The finalizer of SplitMix64: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014.
uint64_t Mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

}  // namespace

EpochOrder::EpochOrder(int64_t items, bool shuffle, uint64_t seed)
    : items_(items), shuffle_(shuffle), seed_(seed) {
  SLUICE_CHECK(items >= 1, "an order of no items");
  while (half_bits_ < 31 && (uint64_t{1} << (2 * half_bits_)) < static_cast<uint64_t>(items)) {
    ++half_bits_;
  }
  SLUICE_CHECK((uint64_t{1} << (2 * half_bits_)) >= static_cast<uint64_t>(items),
               "too many items to order");
}

int64_t EpochOrder::ItemAt(int64_t epoch, int64_t place) const {
  SLUICE_CHECK(place >= 0 && place < items_, "no such place in an epoch");
  if (!shuffle_) return place;
  const uint64_t key = Mix(seed_ ^ Mix(static_cast<uint64_t>(epoch)));
  // At most four times as many values as items, so the walk is short.
  uint64_t value = static_cast<uint64_t>(place);
  do {
    value = Permute(value, key);
  } while (value >= static_cast<uint64_t>(items_));
  return static_cast<int64_t>(value);
}

uint64_t EpochOrder::Permute(uint64_t value, uint64_t key) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t next = left ^ (Mix(key + round * 0xD1B54A32D192ED03u + right) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

}  // namespace sluice
