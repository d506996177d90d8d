// Cutting the line of needs between senders, at places worked out by hand.
#include "plan/serve_line.h"

#include <cstdint>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/serve.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kKiB = 1024;
// Elements are bytes, so that the smallest share has 65536 of them.
constexpr int64_t kOneByte = 1;

// A share of need 0: first_rank, end_rank, begin, end, stripe.
using Cut = std::tuple<int32_t, int32_t, int64_t, int64_t, int32_t>;

std::vector<Cut> CutsOf(const ServeGroup& group) {
  std::vector<Cut> cuts;
  for (const Share& share : group.shares) {
    EXPECT_EQ(share.need, 0);
    cuts.emplace_back(share.first_rank, share.end_rank, share.begin, share.end, share.stripe);
  }
  return cuts;
}

// One need on the line, of ranks 5, 6 and 7.
struct OneNeed {
  OneNeed(int64_t elements, int64_t row_elements, bool apart, int32_t stripes = 1)
      : wants({{ranks, elements, row_elements}}),
        needs({{.want = 0, .ranks = ranks, .apart = apart, .stripes = stripes}}) {}
  OneNeed(const OneNeed&) = delete;
  OneNeed& operator=(const OneNeed&) = delete;

  ServeGroup Between(const std::vector<int64_t>& stretches) const {
    ServeGroup group;
    CutLine({wants, needs}, {0}, stretches, kOneByte, &group);
    CutStripes({wants, needs}, kOneByte, &group);
    return group;
  }

  std::vector<int> ranks = {5, 6, 7};
  std::vector<Want> wants;
  std::vector<Need> needs;
};

TEST(ServeLineTest, StripesAreWorthwhileFromAQuarterMebibyteEach) {
  EXPECT_EQ(StripesOf(4, 1024 * kKiB), 4);
  EXPECT_EQ(StripesOf(4, 1024 * kKiB - 1), 1);
  EXPECT_EQ(StripesOf(1, 0), 1);
}

TEST(ServeLineTest, EvenStretchesDifferByOneAtMost) {
  EXPECT_THAT(EvenStretches(10, 4), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(EvenStretches(2, 3), ElementsAre(1, 1, 0));
  EXPECT_THAT(EvenStretches(0, 2), ElementsAre(0, 0));
}

TEST(ServeLineTest, LevelStretchesFillTheLeastLoadedFirst) {
  EXPECT_THAT(LevelStretches(6, {0, 10, 4}), ElementsAre(5, 0, 1));
  // Too little to reach anyone but the least loaded.
  EXPECT_THAT(LevelStretches(3, {4, 1, 9}), ElementsAre(0, 3, 0));
  EXPECT_THAT(LevelStretches(7, {0, 0, 0}), ElementsAre(2, 2, 3));
  EXPECT_THAT(LevelStretches(0, {3, 8}), ElementsAre(0, 0));
  EXPECT_THAT(LevelStretches(0, {}), IsEmpty());
}

TEST(ServeLineTest, ANeedServedApartIsOnTheLineOnceForEachRank) {
  const OneNeed apart(10, 1, true);
  EXPECT_EQ(TotalElements({apart.wants, apart.needs}, {0}), 30);
  const OneNeed together(10, 1, false);
  EXPECT_EQ(TotalElements({together.wants, together.needs}, {0}), 10);
  EXPECT_EQ(TotalElements({together.wants, together.needs}, {}), 0);
}

TEST(ServeLineTest, ACutMovesToTheNearestRow) {
  const OneNeed need(400'000, 1000, false);
  EXPECT_THAT(CutsOf(need.Between({200'499, 199'501})),
              ElementsAre(Cut(0, 3, 0, 200'000, -1), Cut(0, 3, 200'000, 400'000, -1)));
  EXPECT_THAT(CutsOf(need.Between({200'500, 199'500})),
              ElementsAre(Cut(0, 3, 0, 201'000, -1), Cut(0, 3, 201'000, 400'000, -1)));
}

// Rows too long to cut at: then 16 bytes are what a cut keeps to.
TEST(ServeLineTest, LongRowsAreCutInside) {
  const OneNeed need(400'000, 100'000, false);
  EXPECT_THAT(CutsOf(need.Between({210'007, 189'993})),
              ElementsAre(Cut(0, 3, 0, 210'000, -1), Cut(0, 3, 210'000, 400'000, -1)));
  EXPECT_THAT(CutsOf(need.Between({210'008, 189'992})),
              ElementsAre(Cut(0, 3, 0, 210'016, -1), Cut(0, 3, 210'016, 400'000, -1)));
}

TEST(ServeLineTest, WhatWouldBeTooSmallStaysWhole) {
  // Shorter than two smallest shares: to the nearer edge.
  const OneNeed small(131'071, 1, false);
  ServeGroup group = small.Between({65'535, 65'536});
  EXPECT_THAT(CutsOf(group), ElementsAre(Cut(0, 3, 0, 131'071, -1)));
  EXPECT_THAT(group.first_share, ElementsAre(0, 0, 1));
  group = small.Between({65'536, 65'535});
  EXPECT_THAT(CutsOf(group), ElementsAre(Cut(0, 3, 0, 131'071, -1)));
  EXPECT_THAT(group.first_share, ElementsAre(0, 1, 1));
  // Longer, but one of the pieces would be too small.
  const OneNeed large(400'000, 1, false);
  EXPECT_THAT(large.Between({60'000, 340'000}).first_share, ElementsAre(0, 0, 1));
  EXPECT_THAT(large.Between({340'000, 60'000}).first_share, ElementsAre(0, 1, 1));
  // As large as the smallest share is enough.
  EXPECT_THAT(CutsOf(large.Between({65'536, 334'464})),
              ElementsAre(Cut(0, 3, 0, 65'536, -1), Cut(0, 3, 65'536, 400'000, -1)));
}

TEST(ServeLineTest, CopiesAreGivenOutWholeAndInParts) {
  // One copy and a half each.
  const OneNeed need(200'000, 1, true);
  ServeGroup group = need.Between({300'000, 300'000});
  EXPECT_THAT(CutsOf(group),
              ElementsAre(Cut(0, 1, 0, 200'000, -1), Cut(1, 2, 0, 100'000, -1),
                          Cut(1, 2, 100'000, 200'000, -1), Cut(2, 3, 0, 200'000, -1)));
  EXPECT_THAT(group.first_share, ElementsAre(0, 2, 4));
  // Copies too small to be cut, of which the first sender takes two in one share.
  const OneNeed small(100'000, 1, true);
  EXPECT_THAT(CutsOf(small.Between({150'000, 150'000})),
              ElementsAre(Cut(0, 2, 0, 100'000, -1), Cut(2, 3, 0, 100'000, -1)));
}

TEST(ServeLineTest, StripesDivideANeedEqually) {
  const OneNeed need(400'000, 1, false, 2);
  ServeGroup group = need.Between({400'000});
  EXPECT_THAT(CutsOf(group), ElementsAre(Cut(0, 3, 0, 200'000, 0), Cut(0, 3, 200'000, 400'000, 1)));
  EXPECT_THAT(group.first_share, ElementsAre(0, 2));
  // What of a share reaches into the next stripe by too little stays with its own.
  group = need.Between({250'000, 150'000});
  EXPECT_THAT(CutsOf(group), ElementsAre(Cut(0, 3, 0, 250'000, 0), Cut(0, 3, 250'000, 400'000, 1)));
  EXPECT_THAT(group.first_share, ElementsAre(0, 1, 2));
  group = need.Between({300'000, 100'000});
  EXPECT_THAT(CutsOf(group), ElementsAre(Cut(0, 3, 0, 200'000, 0), Cut(0, 3, 200'000, 300'000, 1),
                                         Cut(0, 3, 300'000, 400'000, 1)));
  EXPECT_THAT(group.first_share, ElementsAre(0, 2, 3));
}

}  // namespace
}  // namespace sluice
