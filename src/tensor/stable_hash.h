// A 64-bit hash with the same result in every process and on every machine.
//
// Not for hash tables, nor against adversaries: it compares what ranks have planned.
#ifndef SLUICE_SRC_TENSOR_STABLE_HASH_H_
#define SLUICE_SRC_TENSOR_STABLE_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace sluice {

class StableHash {
 public:
  // The finaliser of SplitMix64 (Steele, Lea, Flood 2014) over the running state and the value.
  void Add(uint64_t value) {
    uint64_t z = state_ + 0x9e3779b97f4a7c15u + value;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    state_ = z ^ (z >> 31);
  }
  void AddSigned(int64_t value) { Add(static_cast<uint64_t>(value)); }
  void AddText(absl::string_view text) {
    Add(text.size());
    for (char c : text) Add(static_cast<unsigned char>(c));
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_STABLE_HASH_H_
