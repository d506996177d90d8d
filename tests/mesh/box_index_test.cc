// An index of boxes: it finds all that meet a region, and few others.
#include "mesh/box_index.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"

namespace sluice {
namespace {

bool MeetAlong(const Box& a, const Box& b, size_t d) {
  return a.offset[d] < b.offset[d] + b.shape[d] && b.offset[d] < a.offset[d] + a.shape[d];
}

bool Meet(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.shape.size(); ++d) {
    if (!MeetAlong(a, b, d)) return false;
  }
  return true;
}

Box RandomBox(oracle::Dice* dice, size_t dims) {
  Box box;
  for (size_t d = 0; d < dims; ++d) {
    box.offset.push_back(dice->Between(0, 60));
    box.shape.push_back(dice->Chance(80) ? dice->Between(1, 6) : dice->Between(1, 60));
  }
  return box;
}

std::vector<const Box*> PointersTo(const std::vector<Box>& boxes) {
  std::vector<const Box*> pointers;
  pointers.reserve(boxes.size());
  for (const Box& box : boxes) pointers.push_back(&box);
  return pointers;
}

TEST(BoxIndexTest, FindsAllThatMeet) {
  oracle::Dice dice(1);
  int met = 0;
  for (int round = 0; round < oracle::Sampled(2000); ++round) {
    const auto dims = static_cast<size_t>(dice.Between(1, 4));
    std::vector<Box> boxes;
    const int64_t count = dice.Between(0, 40);
    boxes.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) boxes.push_back(RandomBox(&dice, dims));
    const BoxIndex index(PointersTo(boxes));
    for (int i = 0; i < 10; ++i) {
      const Box region = RandomBox(&dice, dims);
      const auto found = index.Find(region);
      ASSERT_TRUE(std::is_sorted(found.begin(), found.end()));
      for (size_t b = 0; b < boxes.size(); ++b) {
        if (!Meet(boxes[b], region)) continue;
        ++met;
        ASSERT_EQ(std::count(found.begin(), found.end(), b), 1) << round << " " << b;
      }
    }
  }
  EXPECT_GT(met, 100);
}

TEST(BoxIndexTest, LooksAlongTheDimensionOfMostOffsets) {
  std::vector<Box> rows;
  rows.reserve(101);
  for (int64_t i = 0; i < 100; ++i) rows.push_back({{i % 2, 10 * i}, {1, 10}});
  rows.push_back({{0, 0}, {2, 1000}});  // a long one does not make the others be found
  const BoxIndex index(PointersTo(rows));
  EXPECT_THAT(index.Find({{0, 505}, {2, 10}}), testing::ElementsAre(50, 51, 100));
  EXPECT_THAT(index.Find({{0, 510}, {2, 10}}), testing::ElementsAre(51, 100));
  EXPECT_THAT(index.Find({{0, 2000}, {2, 10}}), testing::IsEmpty());
}

TEST(BoxIndexTest, PlacesMayBeAsLargeAsNumbersGo) {
  std::vector<Box> boxes;
  constexpr int64_t kMost = INT64_MAX;
  boxes.reserve(21);
  for (int64_t i = 0; i < 20; ++i) boxes.push_back({{kMost - 20 + i}, {1}});
  boxes.push_back({{0}, {kMost}});
  const BoxIndex index(PointersTo(boxes));
  EXPECT_THAT(index.Find({{kMost - 1}, {1}}), testing::ElementsAre(19, 20));
  EXPECT_THAT(index.Find({{0}, {1}}), testing::ElementsAre(20));
}

}  // namespace
}  // namespace sluice
