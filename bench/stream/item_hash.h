// A hash of what was delivered, in its order: equal for two runs that delivered the same items.
#ifndef SLUICE_BENCH_STREAM_ITEM_HASH_H_
#define SLUICE_BENCH_STREAM_ITEM_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"

namespace sluice::bench {

// Not against adversaries.
class ItemHash {
 public:
  void Add(int64_t item, int64_t epoch, absl::Span<const std::byte> bytes) {
    Mix(static_cast<uint64_t>(item));
    Mix(static_cast<uint64_t>(epoch));
    Mix(bytes.size());
    uint64_t word = 0;
    for (; bytes.size() >= sizeof(word); bytes.remove_prefix(sizeof(word))) {
      std::memcpy(&word, bytes.data(), sizeof(word));
      Mix(word);
    }
    word = 0;
    if (!bytes.empty()) std::memcpy(&word, bytes.data(), bytes.size());
    Mix(word);
  }
  void Add(uint64_t value) { Mix(value); }
  uint64_t value() const { return state_; }

 private:
  void Mix(uint64_t word) {
    state_ = (state_ ^ word) * 0x9E3779B97F4A7C15u;
    state_ ^= state_ >> 32;
  }
  uint64_t state_ = 1;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_ITEM_HASH_H_
