// Sets of indices, split by their owners.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "mesh/axis.h"
#include "mesh/partition.h"
#include "oracle/brute_layout.h"
#include "oracle/make_layout.h"
#include "oracle/random_layout.h"
#include "sluice/layout.h"
#include "tensor/interval.h"

namespace sluice {
namespace {

using oracle::IndexList;

IndexList Indices(const IntervalList& list) {
  IndexList indices;
  for (const Interval& interval : list.intervals()) {
    for (int64_t i = interval.begin; i < interval.end; ++i) indices.push_back(i);
  }
  return indices;
}

// A random subset of [0, size), as stretches.
IntervalList RandomQuery(oracle::Dice* dice, int64_t size) {
  IntervalList query;
  int64_t at = dice->Between(0, 3);
  while (at < size) {
    const int64_t end = std::min(size, at + dice->Between(1, 12));
    query.Append(at, end);
    at = end + dice->Between(1, 5);
  }
  return query;
}

// Checks SplitByPart of dimension `d` against what each rank of the mesh owns.
void ExpectSplitEqualsOracle(const Layout& layout, const std::vector<int64_t>& shape, size_t d,
                             const IntervalList& query) {
  const Partition partition(layout, static_cast<int>(shape.size()));
  const std::vector<PartOverlap> split =
      SplitByPart(shape[d], partition.cuts(static_cast<int>(d)), query);
  std::map<int64_t, IndexList> by_part;
  for (size_t i = 0; i < split.size(); ++i) {
    ASSERT_FALSE(split[i].indices.empty());
    if (i > 0) {
      ASSERT_LT(split[i - 1].part, split[i].part);
    }
    by_part[split[i].part] = Indices(split[i].indices);
  }
  const IndexList asked = Indices(query);
  std::map<int64_t, IndexList> expected;
  for (size_t position = 0; position < layout.mesh.ranks().size(); ++position) {
    const auto owned = oracle::OwnedLists(layout, shape, layout.mesh.ranks()[position]);
    IndexList common;
    std::set_intersection((*owned)[d].begin(), (*owned)[d].end(), asked.begin(), asked.end(),
                          std::back_inserter(common));
    const int64_t part = partition.PartsOf(static_cast<int64_t>(position))[d];
    if (!common.empty()) expected[part] = common;
  }
  ASSERT_EQ(by_part, expected);
}

TEST(SplitByPartTest, RandomQueriesEqualTheOracle) {
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    oracle::Dice dice(seed);
    const std::vector<int64_t> shape = oracle::RandomShape(&dice, 2, 2000);
    const Layout layout =
        oracle::RandomLayout(&dice, oracle::RankRange(0, 30), static_cast<int>(shape.size()));
    const auto d = static_cast<size_t>(dice.Between(0, static_cast<int64_t>(shape.size()) - 1));
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", oracle::Describe(layout, shape)));
    ExpectSplitEqualsOracle(layout, shape, d, RandomQuery(&dice, shape[d]));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace sluice
