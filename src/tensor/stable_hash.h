// A 64-bit hash with the same result in every process and on every machine.
//
// Not for hash tables, nor against adversaries: it compares what ranks have planned.
#ifndef SLUICE_SRC_TENSOR_STABLE_HASH_H_
#define SLUICE_SRC_TENSOR_STABLE_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "tensor/mix_bits.h"

namespace sluice {

class StableHash {
 public:
  void Add(uint64_t value) { state_ = MixBits(state_ + value); }
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
