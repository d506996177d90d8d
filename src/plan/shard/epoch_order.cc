// Finds the block of a place, and the item inside the block.
#include "plan/shard/epoch_order.h"

#include <algorithm>

#include "tensor/check.h"
#include "tensor/mix_bits.h"

namespace sluice {

EpochOrder::EpochOrder(int64_t items, bool shuffle, uint64_t seed, int64_t block_items)
    : items_(items),
      shuffle_(shuffle),
      seed_(seed),
      block_items_(std::clamp<int64_t>(block_items, 1, std::max<int64_t>(1, items))),
      last_items_(items - (items - 1) / block_items_ * block_items_),
      blocks_((items - 1) / block_items_ + 1),
      within_(block_items_),
      within_last_(last_items_) {
  SLUICE_CHECK(items >= 1 && block_items >= 1, "an order of no items");
}

uint64_t EpochOrder::KeyOf(int64_t epoch) const {
  return MixBits(seed_ ^ MixBits(static_cast<uint64_t>(epoch)));
}

// Blocks behind the short one begin earlier than they would behind a whole one.
EpochOrder::Spot EpochOrder::SpotOf(int64_t place, uint64_t key) const {
  const int64_t turn = place / block_items_;
  if (last_items_ == block_items_) return {turn, place % block_items_};
  const int64_t short_turn = blocks_.PlaceOf(blocks_.values() - 1, key);
  if (turn < short_turn) return {turn, place % block_items_};
  const int64_t after = place - short_turn * block_items_;
  if (after < last_items_) return {short_turn, after};
  const int64_t beyond = after - last_items_;
  return {short_turn + 1 + beyond / block_items_, beyond % block_items_};
}

int64_t EpochOrder::ItemAt(int64_t epoch, int64_t place) const {
  SLUICE_CHECK(place >= 0 && place < items_, "no such place in an epoch");
  if (!shuffle_) return place;
  const uint64_t key = KeyOf(epoch);
  const Spot spot = SpotOf(place, key);
  const int64_t block = blocks_.At(spot.turn, key);
  if (block_items_ == 1) return block;
  // Each block has an order of its own.
  const uint64_t inner_key = MixBits(key ^ MixBits(static_cast<uint64_t>(block)));
  const Permutation& inner = block == blocks_.values() - 1 ? within_last_ : within_;
  return block * block_items_ + inner.At(spot.within, inner_key);
}

int64_t EpochOrder::BlockAt(int64_t epoch, int64_t place) const {
  SLUICE_CHECK(place >= 0 && place < items_, "no such place in an epoch");
  return shuffle_ ? SpotOf(place, KeyOf(epoch)).turn : place / block_items_;
}

}  // namespace sluice
