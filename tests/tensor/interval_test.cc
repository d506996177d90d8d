// Interval lists against plain lists of indices.
#include "tensor/interval.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> Indices(const IntervalList& list) {
  std::vector<int64_t> indices;
  for (const Interval& interval : list.intervals()) {
    for (int64_t i = interval.begin; i < interval.end; ++i) indices.push_back(i);
  }
  return indices;
}

TEST(IntervalListTest, EmptyLists) {
  for (const IntervalList& list : {IntervalList(), IntervalList(0)}) {
    EXPECT_TRUE(list.empty());
    EXPECT_EQ(list.size(), 0);
    EXPECT_THAT(list.intervals(), IsEmpty());
  }
}

TEST(IntervalListTest, PrefixOfTheIntegers) {
  const IntervalList list(7);
  EXPECT_FALSE(list.empty());
  EXPECT_EQ(list.size(), 7);
  EXPECT_THAT(list.intervals(), ElementsAre(Interval{0, 7, 0}));
}

TEST(IntervalListTest, TouchingAndEmptyRangesAreFolded) {
  IntervalList list;
  list.Append(2, 4);
  list.Append(4, 4);
  list.Append(4, 5);
  list.Append(9, 9);
  list.Append(8, 10);
  list.Append(20, 21);
  EXPECT_THAT(list.intervals(),
              ElementsAre(Interval{2, 5, 0}, Interval{8, 10, 3}, Interval{20, 21, 5}));
  EXPECT_EQ(list.size(), 6);
}

TEST(IntervalListTest, PositionsCountTheIndicesBefore) {
  IntervalList list;
  list.Append(2, 5);
  list.Append(8, 10);
  const std::vector<int64_t> indices = Indices(list);
  for (size_t p = 0; p < indices.size(); ++p) {
    EXPECT_EQ(list.PositionOf(indices[p]), static_cast<int64_t>(p));
  }
}

TEST(IntervalListTest, SlicesContinueWhatIsThere) {
  IntervalList other;
  other.Append(2, 5);
  other.Append(8, 10);
  other.Append(12, 20);
  IntervalList list;
  list.AppendSlice(other, 1, 4);
  EXPECT_THAT(list.intervals(), ElementsAre(Interval{3, 5, 0}, Interval{8, 9, 2}));
  list.AppendSlice(other, 4, 6);
  EXPECT_THAT(list.intervals(),
              ElementsAre(Interval{3, 5, 0}, Interval{8, 10, 2}, Interval{12, 13, 4}));
  list.AppendSlice(other, 6, 6);
  EXPECT_EQ(list.size(), 5);
}

TEST(IntervalListTest, WhatLiesInARangeCountsFromItsBegin) {
  IntervalList list;
  list.Append(0, 10);
  list.Append(20, 30);
  EXPECT_THAT(list.From(5, 25).intervals(), ElementsAre(Interval{0, 5, 0}, Interval{15, 20, 5}));
  EXPECT_THAT(list.From(20, 30).intervals(), ElementsAre(Interval{0, 10, 0}));
  EXPECT_THAT(list.From(10, 20).intervals(), IsEmpty());
}

TEST(IntervalListTest, EqualIndicesAreEqualLists) {
  IntervalList a;
  a.Append(0, 3);
  a.Append(3, 5);
  EXPECT_EQ(a, IntervalList(5));
  EXPECT_FALSE(a == IntervalList(6));
}

TEST(IntervalListTest, RandomSlicesEqualSlicesOfPlainLists) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto below = [&random](int64_t n) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
    };
    IntervalList list;
    int64_t end = 0;
    for (int64_t n = below(8); n > 0; --n) {
      const int64_t begin = end + below(4);
      end = begin + below(6);
      list.Append(begin, end);
    }
    const std::vector<int64_t> indices = Indices(list);
    ASSERT_EQ(list.size(), static_cast<int64_t>(indices.size()));
    for (size_t p = 0; p < indices.size(); ++p) {
      ASSERT_EQ(list.PositionOf(indices[p]), static_cast<int64_t>(p));
    }
    const int64_t from = below(list.size() + 1);
    const int64_t middle = from + below(list.size() - from + 1);
    const int64_t to = middle + below(list.size() - middle + 1);
    IntervalList slice;
    slice.AppendSlice(list, from, middle);
    slice.AppendSlice(list, middle, to);
    const std::vector<int64_t> expected(indices.begin() + from, indices.begin() + to);
    ASSERT_EQ(Indices(slice), expected);
    IntervalList whole;
    whole.AppendSlice(list, from, to);
    ASSERT_EQ(slice, whole);
  }
}

TEST(IntervalListDeathTest, MisuseIsCaughtInReleaseBuilds) {
  IntervalList list;
  list.Append(2, 5);
  EXPECT_DEATH(list.Append(4, 6), "ascend");
  EXPECT_DEATH(list.PositionOf(1), "not in the list");
  EXPECT_DEATH(list.PositionOf(5), "not in the list");
}

}  // namespace
}  // namespace sluice
