// The order of a data set's items in each epoch: as they are numbered, or shuffled by a seed.
//
// Any place can be asked for at once, and nothing is stored. So every rank sees the same order,
// however many ranks there are. A job that goes on where another one ended sees it too.
#ifndef SLUICE_SRC_PLAN_SHARD_EPOCH_ORDER_H_
#define SLUICE_SRC_PLAN_SHARD_EPOCH_ORDER_H_

#include <cstdint>

#include "plan/shard/permutation.h"

namespace sluice {

class EpochOrder {
 public:
  // `items` and `block_items` at least 1. A shuffled order is a permutation that `seed` and the
  // epoch choose: of blocks of `block_items` neighbours, and of the items within each block. With
  // blocks of one, the items are permuted. The last block may be shorter, and comes anywhere.
  EpochOrder(int64_t items, bool shuffle, uint64_t seed, int64_t block_items = 1);

  int64_t items() const { return items_; }
  // The item at `place`, 0 .. items()-1, of `epoch`.
  int64_t ItemAt(int64_t epoch, int64_t place) const;
  // Which of an epoch's blocks `place` is in, counted in the order in which they come.
  int64_t BlockAt(int64_t epoch, int64_t place) const;
  int64_t blocks() const { return blocks_.values(); }

 private:
  struct Spot {
    int64_t turn = 0;    // of the block, in the epoch's order
    int64_t within = 0;  // the place inside the block
  };
  uint64_t KeyOf(int64_t epoch) const;
  Spot SpotOf(int64_t place, uint64_t key) const;

  int64_t items_;
  bool shuffle_;
  uint64_t seed_;
  int64_t block_items_;
  int64_t last_items_;  // of the last block as items are numbered
  Permutation blocks_;
  Permutation within_;
  Permutation within_last_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_SHARD_EPOCH_ORDER_H_
