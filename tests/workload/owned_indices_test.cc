// The benchmark's own reading of layouts, against lists of indices and against the library.
#include "workload/owned_indices.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "oracle/brute_layout.h"
#include "oracle/make_layout.h"
#include "oracle/random_layout.h"
#include "sluice/layout.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> Listed(const OwnedIndices& owned) {
  std::vector<int64_t> indices;
  for (const auto& [begin, end] : owned.Stretches()) {
    EXPECT_LT(begin, end);
    EXPECT_TRUE(indices.empty() || indices.back() + 1 < begin) << "stretches that touch";
    for (int64_t i = begin; i < end; ++i) indices.push_back(i);
  }
  return indices;
}

std::vector<int64_t> Owned(const char* layout, int64_t size, int rank) {
  return Listed(OwnedIndices(Layout::Parse(layout).value(), 0, size, rank));
}

TEST(OwnedIndices, FollowTheExamplesOfTheRule) {
  EXPECT_THAT(Owned("4:S(0)", 10, 3), ElementsAre(9));
  EXPECT_THAT(Owned("4:S(0)", 6, 3), IsEmpty());
  EXPECT_THAT(Owned("2,3:S(0),S(0)", 10, 3), ElementsAre(5, 6));
  EXPECT_THAT(Owned("2,2:SS(0,2),S(0)", 8, 2), ElementsAre(2, 3));
  EXPECT_THAT(Owned("3,2:SS(0,2),S(0)", 7, 4), ElementsAre(6));
  EXPECT_THAT(Owned("3,2:SS(0,2),S(0)", 7, 5), IsEmpty());
  EXPECT_THAT(Owned("2:SS(0,2)", 8, 1), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(Owned("2:R", 3, 1), ElementsAre(0, 1, 2));
  EXPECT_THAT(Owned("2:R", 3, 2), IsEmpty()) << "not in the mesh";
}

// By lists, index by index, with positions.
void ExpectAsListed(const Layout& layout, const std::vector<int64_t>& shape, int rank) {
  const auto lists = oracle::OwnedLists(layout, shape, rank);
  for (size_t d = 0; d < shape.size(); ++d) {
    const OwnedIndices owned(layout, static_cast<int>(d), shape[d], rank);
    const oracle::IndexList list = lists ? (*lists)[d] : oracle::IndexList();
    ASSERT_EQ(Listed(owned), list) << oracle::Describe(layout, shape) << " rank " << rank;
    ASSERT_EQ(owned.count(), static_cast<int64_t>(list.size()));
    for (int64_t i = 0; i < shape[d]; ++i) {
      const OwnedIndices::Answer answer = owned.At(i);
      const auto found = std::lower_bound(list.begin(), list.end(), i);
      ASSERT_EQ(answer.owned, found != list.end() && *found == i) << i;
      ASSERT_GE(answer.count, 1);
      ASSERT_LE(answer.count, shape[d] - i);
      if (answer.owned) {
        ASSERT_EQ(answer.position, found - list.begin());
      }
    }
  }
}

// The library alone: where it reads a layout otherwise, this is the test that says so.
void ExpectAsTheLibrarySays(const Layout& layout, const std::vector<int64_t>& shape, int rank) {
  const auto ranges = OwnedRanges(layout, shape, rank).value();
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<OwnedIndices::Stretch> theirs;  // without empty ranges, and joined where they touch
    for (const IndexRange& range : ranges[d]) {
      if (range.begin == range.end) continue;
      if (!theirs.empty() && theirs.back().end == range.begin) {
        theirs.back().end = range.end;
      } else {
        theirs.push_back({range.begin, range.end});
      }
    }
    const auto ours = OwnedIndices(layout, static_cast<int>(d), shape[d], rank).Stretches();
    ASSERT_EQ(ours.size(), theirs.size()) << oracle::Describe(layout, shape) << " rank " << rank;
    for (size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].begin, theirs[i].begin) << oracle::Describe(layout, shape);
      ASSERT_EQ(ours[i].end, theirs[i].end) << oracle::Describe(layout, shape);
    }
  }
}

Layout RandomLayout(oracle::Dice* dice, size_t dims) {
  const auto ranks = static_cast<int>(dice->Between(1, 40));
  return oracle::RandomLayout(dice, oracle::RankRange(3, ranks), static_cast<int>(dims));
}

TEST(OwnedIndices, AreThoseOfTheListsAndOfTheLibraryForRandomLayouts) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    oracle::Dice dice(seed);
    const std::vector<int64_t> shape = oracle::RandomShape(&dice, 3, 400);
    const Layout layout = RandomLayout(&dice, shape.size());
    const int rank = static_cast<int>(dice.Between(2, 44));  // now and then outside the mesh
    ExpectAsListed(layout, shape, rank);
    ExpectAsTheLibrarySays(layout, shape, rank);
    if (HasFailure()) return;
  }
}

TEST(OwnedIndices, OfHugeDimensionsAreThoseOfTheLibrary) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    oracle::Dice dice(seed);
    const std::vector<int64_t> shape = {dice.Between(1, int64_t{1} << 50)};
    const Layout layout = RandomLayout(&dice, 1);
    ExpectAsTheLibrarySays(layout, shape, static_cast<int>(dice.Between(3, 44)));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice::bench
