// Places of an epoch at equal distances, and the positions that they come to through all epochs.
//
// Positions count the items of all epochs in their order: position = epoch * items + place.
#ifndef SLUICE_SRC_PLAN_PLACE_SET_H_
#define SLUICE_SRC_PLAN_PLACE_SET_H_

#include <algorithm>
#include <cstdint>

#include "tensor/check.h"

namespace sluice {

// No position is larger.
inline constexpr int64_t kPositionsMax = int64_t{1} << 62;

// Places first, first + step, ... below `end` of every epoch. None is negative; step is at least 1.
struct PlaceSet {
  int64_t first = 0;
  int64_t step = 1;
  int64_t end = 0;

  bool Has(int64_t place) const {
    return place >= first && place < end && (place - first) % step == 0;
  }
  int64_t count() const { return first < end ? (end - first - 1) / step + 1 : 0; }
  // The number of members below `place`.
  int64_t CountBelow(int64_t place) const {
    return PlaceSet{first, step, std::min(end, place)}.count();
  }

  // Members are numbered through the epochs, of `items` each. The number of those below a position.
  int64_t IndexAt(int64_t position, int64_t items) const {
    return position / items * count() + CountBelow(position % items);
  }
  // The position of a member. The set has one.
  int64_t PositionOf(int64_t index, int64_t items) const {
    const int64_t members = count();
    SLUICE_CHECK(members > 0, "a set without members");
    return index / members * items + first + index % members * step;
  }

  // The members of both; some set without members if there are none.
  PlaceSet And(const PlaceSet& other) const;

  friend bool operator==(const PlaceSet&, const PlaceSet&) = default;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_PLACE_SET_H_
