// Released positions against plain sets of them.
#include "plan/released.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"

namespace sluice {
namespace {

constexpr int64_t kEpochs = 6;

ReleasedPart RandomPart(oracle::Dice* dice, const PlaceSet& places) {
  ReleasedPart part = {places, dice->Between(0, 2 * places.count()), {}};
  int64_t next = part.count + dice->Between(1, 4);
  for (int64_t r = dice->Between(0, 3); r > 0; --r) {
    const int64_t end = next + dice->Between(1, 5);
    part.done.push_back({next, end});
    next = end + dice->Between(1, 4);
  }
  return part;
}

// Ranks that stand side by side, as those of one job do, or any sets.
ReleasedLayer RandomLayer(oracle::Dice* dice, int64_t items) {
  ReleasedLayer layer;
  const int64_t ranks = dice->Between(1, std::min<int64_t>(4, items));
  const bool beside = dice->Chance(60);
  for (int64_t r = 0; r < ranks; ++r) {
    const PlaceSet side_by_side = {r, ranks, items};
    const PlaceSet any = {dice->Between(0, items - 1), dice->Between(1, 5), items};
    layer.push_back(RandomPart(dice, beside ? side_by_side : any));
  }
  return layer;
}

bool PartHas(const ReleasedPart& part, int64_t index) {
  return index < part.count ||
         std::any_of(part.done.begin(), part.done.end(), [&](const MemberRange& range) {
           return range.begin <= index && index < range.end;
         });
}

// All positions of `epochs` epochs that are released, by the words of ReleasedLayer.
std::vector<bool> ReleasedIn(int64_t items, const std::vector<ReleasedLayer>& layers) {
  std::vector<bool> released(static_cast<size_t>(items * kEpochs * 8), false);
  for (const ReleasedLayer& layer : layers) {
    std::vector<int> counted(released.size(), 0);
    std::vector<int> allowed(released.size(), 0);
    for (const ReleasedPart& part : layer) {
      int64_t index = 0;
      for (size_t at = 0; at < released.size(); ++at) {
        if (!part.places.Has(static_cast<int64_t>(at) % items)) continue;
        ++counted[at];
        allowed[at] += PartHas(part, index++) ? 1 : 0;
      }
    }
    for (size_t at = 0; at < released.size(); ++at) {
      if (counted[at] > 0 && counted[at] == allowed[at]) released[at] = true;
    }
  }
  return released;
}

TEST(ReleasedTest, AnswersAsASetOfPositionsDoes) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    oracle::Dice dice(seed);
    const int64_t items = dice.Between(1, 60);
    std::vector<ReleasedLayer> layers(static_cast<size_t>(dice.Between(0, 3)));
    for (ReleasedLayer& layer : layers) layer = RandomLayer(&dice, items);
    const PlaceSet own = {dice.Between(0, items - 1), dice.Between(1, 4), items};
    const Released released(items, own, layers);
    const std::vector<bool> expected = ReleasedIn(items, layers);
    int64_t missing = 0;
    for (int64_t at = 0; at < items * kEpochs; ++at) {
      EXPECT_EQ(released.Has(at), expected[static_cast<size_t>(at)]) << at;
      EXPECT_FALSE(at >= released.end() && expected[static_cast<size_t>(at)]) << at;
      EXPECT_EQ(released.CountBelow(at), missing) << at;
      int64_t next = at;
      while (!own.Has(next % items) || expected[static_cast<size_t>(next)]) ++next;
      EXPECT_EQ(released.Next(at), next) << at;
      if (own.Has(at % items) && !expected[static_cast<size_t>(at)]) ++missing;
    }
  }
}

TEST(ReleasedTest, NothingIsReleasedAtFirst) {
  const Released none;
  EXPECT_FALSE(none.Has(0));
  EXPECT_EQ(none.end(), 0);
  EXPECT_EQ(none.Next(0), kPositionsMax);  // without places
  EXPECT_EQ(none.CountBelow(100), 0);
}

TEST(ReleasedTest, APartKnowsItsMembers) {
  const ReleasedPart part = {{0, 1, 100}, 3, {{5, 7}, {9, 10}}};
  std::vector<int64_t> members;
  for (int64_t index = 0; index < 20; ++index) {
    if (part.Has(index)) members.push_back(index);
  }
  EXPECT_THAT(members, testing::ElementsAre(0, 1, 2, 5, 6, 9));
  EXPECT_EQ(part.end_index(), 10);
  EXPECT_EQ((ReleasedPart{{0, 1, 100}, 3, {}}).end_index(), 3);
}

TEST(ReleasedTest, PartsThatShareItemsMayNotBeFarApart) {
  const int64_t items = int64_t{1} << 40;
  const auto layer = [&](int64_t step, int64_t count) {
    return ReleasedLayer{{{0, 2, items}, 0, {}}, {{1, step, items}, count, {}}};
  };
  EXPECT_TRUE(CheckReleased(items, {layer(2, items / 4)}).ok());  // disjoint
  EXPECT_TRUE(CheckReleased(items, {layer(3, int64_t{1} << 28)}).ok());
  const absl::Status far = CheckReleased(items, {layer(3, int64_t{1} << 30)});
  EXPECT_EQ(far.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(far.message(),
            "cursors of ranks that share items, or of several jobs, that are 3221225471 positions "
            "apart; at most 1073741824 can be");
  EXPECT_FALSE(CheckReleased(items, {layer(2, items / 4), layer(2, items / 4)}).ok());
  EXPECT_TRUE(CheckReleased(items, {}).ok());
}

TEST(ReleasedTest, WhatIsSaidToCoverHasAllPlacesOfTheLayers) {
  int covered = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    oracle::Dice dice(seed);
    const int64_t items = dice.Between(1, 12);
    const std::vector<ReleasedLayer> layers = {RandomLayer(&dice, items)};
    std::vector<PlaceSet> sets(static_cast<size_t>(dice.Between(1, 3)));
    for (PlaceSet& set : sets) set = {dice.Between(0, 2), dice.Between(1, 3), items};
    if (!CoverReleased(items, sets, layers)) continue;
    ++covered;
    for (int64_t place = 0; place < items; ++place) {
      const bool among = std::any_of(sets.begin(), sets.end(),
                                     [&](const PlaceSet& set) { return set.Has(place); });
      const bool needed =
          std::any_of(layers[0].begin(), layers[0].end(),
                      [&](const ReleasedPart& part) { return part.places.Has(place); });
      EXPECT_TRUE(among || !needed) << "place " << place;
    }
  }
  EXPECT_GT(covered, 100);
  EXPECT_TRUE(CoverReleased(10, {}, {}));
  EXPECT_TRUE(CoverReleased(10, {{0, 2, 10}, {1, 2, 10}}, {{{{3, 1, 10}, 1, {}}}}));
  EXPECT_FALSE(CoverReleased(10, {{0, 2, 10}}, {{{{0, 1, 10}, 1, {}}}}));
}

}  // namespace
}  // namespace sluice
