// An item of varying size in memory: room for its bytes, and behind it how many there are.
#ifndef SLUICE_SRC_STORAGE_SIZED_ITEM_H_
#define SLUICE_SRC_STORAGE_SIZED_ITEM_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/round.h"

namespace sluice {

// The bytes that an item of at most `capacity` bytes takes, with its length.
constexpr int64_t StoredBytes(int64_t capacity) {
  constexpr int64_t kUnit = sizeof(int64_t);
  return RoundUp(capacity, kUnit) + kUnit;
}

// `item` begins what takes `stored` bytes.
inline void StoreLength(std::byte* item, int64_t stored, int64_t length) {
  std::memcpy(item + stored - int64_t{sizeof(length)}, &length, sizeof(length));
}
inline int64_t StoredLength(const std::byte* item, int64_t stored) {
  int64_t length = 0;
  std::memcpy(&length, item + stored - int64_t{sizeof(length)}, sizeof(length));
  return length;
}

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_SIZED_ITEM_H_
