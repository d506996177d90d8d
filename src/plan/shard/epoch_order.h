// The order of a data set's items in each epoch: as they are numbered, or shuffled by a seed.
//
// Any place can be asked for at once, and nothing is stored. So every rank sees the same order,
// however many ranks there are. A job that goes on where another one ended sees it too.
#ifndef SLUICE_SRC_PLAN_SHARD_EPOCH_ORDER_H_
#define SLUICE_SRC_PLAN_SHARD_EPOCH_ORDER_H_

#include <cstdint>

namespace sluice {

class EpochOrder {
 public:
  // `items` at least 1. A shuffled order is a permutation that `seed` and the epoch choose.
  EpochOrder(int64_t items, bool shuffle, uint64_t seed);

  int64_t items() const { return items_; }
  // The item at `place`, 0 .. items()-1, of `epoch`.
  int64_t ItemAt(int64_t epoch, int64_t place) const;

 private:
  uint64_t Permute(uint64_t value, uint64_t key) const;

  int64_t items_;
  bool shuffle_;
  uint64_t seed_;
  int half_bits_ = 1;  // of a block that the permutation is over: at least `items` values
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_SHARD_EPOCH_ORDER_H_
