// A permutation of 0 .. n-1 that a key chooses; nothing is stored.
#ifndef SLUICE_SRC_PLAN_SHARD_PERMUTATION_H_
#define SLUICE_SRC_PLAN_SHARD_PERMUTATION_H_

#include <cstdint>

namespace sluice {

class Permutation {
 public:
  // `values` is at least 1.
  explicit Permutation(int64_t values);

  int64_t values() const { return values_; }
  // Which value comes at `place`, 0 .. values()-1.
  int64_t At(int64_t place, uint64_t key) const;
  // At which place `value` comes.
  int64_t PlaceOf(int64_t value, uint64_t key) const;

 private:
  uint64_t Forward(uint64_t value, uint64_t key) const;
  uint64_t Backward(uint64_t value, uint64_t key) const;

  int64_t values_;
  int half_bits_ = 1;  // of a block that the network is over: at least `values_`
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_SHARD_PERMUTATION_H_
