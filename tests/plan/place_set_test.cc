// Places at equal distances against plain lists of positions.
#include "plan/place_set.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"

namespace sluice {
namespace {

std::vector<int64_t> Members(const PlaceSet& set, int64_t items) {
  std::vector<int64_t> members;
  for (int64_t place = set.first; place < std::min(set.end, items); place += set.step) {
    members.push_back(place);
  }
  return members;
}

TEST(PlaceSetTest, CountsWhatAListOfMembersHas) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    oracle::Dice dice(seed);
    const PlaceSet set = {dice.Between(0, 30), dice.Between(1, 9), dice.Between(0, 50)};
    const std::vector<int64_t> members = Members(set, 50);
    EXPECT_EQ(set.count(), static_cast<int64_t>(members.size()));
    for (int64_t place = 0; place < 60; ++place) {
      EXPECT_EQ(set.Has(place), std::count(members.begin(), members.end(), place) == 1) << place;
      EXPECT_EQ(set.CountBelow(place),
                std::lower_bound(members.begin(), members.end(), place) - members.begin())
          << place;
    }
  }
}

TEST(PlaceSetTest, MembersAreNumberedThroughTheEpochs) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    oracle::Dice dice(seed);
    const int64_t items = dice.Between(1, 40);
    const PlaceSet set = {dice.Between(0, items - 1), dice.Between(1, 9), items};
    const std::vector<int64_t> members = Members(set, items);
    int64_t index = 0;
    for (int64_t position = 0; position < 4 * items; ++position) {
      EXPECT_EQ(set.IndexAt(position, items), index) << position;
      if (std::count(members.begin(), members.end(), position % items) == 0) continue;
      EXPECT_EQ(set.PositionOf(index, items), position);
      ++index;
    }
  }
}

// Without an overflow: both counts of places and steps come from texts that a user keeps.
TEST(PlaceSetTest, TheLargestSetsMeetWhereTheyShould) {
  const PlaceSet all = {0, 1, kPositionsMax};
  EXPECT_EQ(all.count(), kPositionsMax);
  EXPECT_EQ(all.And(all), all);
  const PlaceSet thirds = {2, 3, kPositionsMax};
  const PlaceSet halves = {1, 2, kPositionsMax};
  EXPECT_EQ(thirds.And(halves), (PlaceSet{5, 6, kPositionsMax}));
  const int64_t prime = 2147483647;
  const PlaceSet far = {prime - 1, prime, kPositionsMax};
  const PlaceSet near = {prime, prime + 1, kPositionsMax};
  const PlaceSet both = far.And(near);
  EXPECT_TRUE(far.Has(both.first) && near.Has(both.first));
  EXPECT_EQ(both.count(), 1);
}

TEST(PlaceSetDeathTest, APositionIsThatOfAMember) {
  EXPECT_DEATH((PlaceSet{3, 1, 3}).PositionOf(0, 10), "a set without members");
}

}  // namespace
}  // namespace sluice
