// Ownership of thousands of random layouts against explicit index lists.
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/brute_layout.h"
#include "oracle/make_layout.h"
#include "oracle/random_layout.h"
#include "sluice/layout.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kSeeds = 6000;
constexpr int kJobRanks = 40;

// What a sweep has met, so that it can be shown to have met what it is for.
struct Coverage {
  int empty_parts = 0;
  int gaps = 0;
  int zero_sizes = 0;
  int repeated_cuts = 0;
  int permuted = 0;
  int eight_dims = 0;
};

// Ranges must be ascending, apart (touching ones are merged) and not empty.
void ExpectCanonical(const std::vector<IndexRange>& ranges) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_LT(ranges[i].begin, ranges[i].end);
    if (i > 0) {
      EXPECT_LT(ranges[i - 1].end, ranges[i].begin);
    }
  }
}

void ExpectOwnedEqualsOracle(const Layout& layout, const std::vector<int64_t>& shape, int rank,
                             Coverage* coverage) {
  SCOPED_TRACE(absl::StrCat("rank ", rank));
  const auto owned = OwnedRanges(layout, shape, rank);
  const auto local = LocalShape(layout, shape, rank);
  ASSERT_TRUE(owned.ok()) << owned.status();
  ASSERT_TRUE(local.ok()) << local.status();
  const auto expected = oracle::OwnedLists(layout, shape, rank);
  ASSERT_THAT(*owned, SizeIs(shape.size()));
  ASSERT_THAT(*local, SizeIs(shape.size()));
  if (!expected.has_value()) {
    EXPECT_THAT(*owned, Each(IsEmpty()));
    EXPECT_THAT(*local, Each(0));
    return;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    oracle::IndexList indices;
    for (const IndexRange& range : (*owned)[d]) {
      for (int64_t i = range.begin; i < range.end; ++i) indices.push_back(i);
    }
    EXPECT_EQ(indices, (*expected)[d]) << "dimension " << d;
    EXPECT_EQ((*local)[d], static_cast<int64_t>((*expected)[d].size())) << "dimension " << d;
    ExpectCanonical((*owned)[d]);
    coverage->gaps += (*owned)[d].size() > 1 ? 1 : 0;
    coverage->empty_parts += shape[d] > 0 && indices.empty() ? 1 : 0;
  }
}

void Count(const Layout& layout, const std::vector<int64_t>& shape, Coverage* coverage) {
  for (const int64_t size : shape) coverage->zero_sizes += size == 0 ? 1 : 0;
  coverage->eight_dims += shape.size() == 8 ? 1 : 0;
  std::vector<int> cuts(shape.size());
  for (const Placement& placement : layout.placements) {
    if (placement.kind == Placement::Kind::kReplicate) continue;
    coverage->repeated_cuts += cuts[static_cast<size_t>(placement.dim)]++ == 1 ? 1 : 0;
  }
  for (size_t i = 1; i < layout.mesh.ranks().size(); ++i) {
    if (layout.mesh.ranks()[i] < layout.mesh.ranks()[i - 1]) {
      ++coverage->permuted;
      break;
    }
  }
}

TEST(LayoutRandomTest, OwnershipEqualsTheOracle) {
  Coverage coverage;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    oracle::Dice dice(seed);
    const std::vector<int64_t> shape = oracle::RandomShape(&dice, 8, 100000);
    const Layout layout = oracle::RandomLayout(&dice, oracle::RankRange(0, kJobRanks),
                                               static_cast<int>(shape.size()));
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", oracle::Describe(layout, shape)));
    ASSERT_TRUE(ValidateLayout(layout, shape).ok()) << ValidateLayout(layout, shape);
    for (const int rank : layout.mesh.ranks()) {
      ExpectOwnedEqualsOracle(layout, shape, rank, &coverage);
    }
    ExpectOwnedEqualsOracle(layout, shape, kJobRanks, &coverage);
    Count(layout, shape, &coverage);
    if (HasFailure()) return;
  }
  EXPECT_GT(coverage.empty_parts, 1000);
  EXPECT_GT(coverage.gaps, 1000);
  EXPECT_GT(coverage.zero_sizes, 100);
  EXPECT_GT(coverage.repeated_cuts, 1000);
  EXPECT_GT(coverage.permuted, 1000);
  EXPECT_GT(coverage.eight_dims, 500);
}

// Every element has as many owners as the replicating mesh dimensions have ranks.
TEST(LayoutRandomTest, OwnedElementsAddUpToElementsTimesReplicas) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    oracle::Dice dice(seed + 1000000);
    const std::vector<int64_t> shape = oracle::RandomShape(&dice, 3, 500);
    const Layout layout =
        oracle::RandomLayout(&dice, oracle::RankRange(0, 12), static_cast<int>(shape.size()));
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", oracle::Describe(layout, shape)));
    int64_t replicas = 1;
    for (size_t m = 0; m < layout.placements.size(); ++m) {
      if (layout.placements[m].kind == Placement::Kind::kReplicate) {
        replicas *= layout.mesh.sizes()[m];
      }
    }
    int64_t elements = 1;
    for (const int64_t size : shape) elements *= size;
    int64_t owned_by_all = 0;
    for (const int rank : layout.mesh.ranks()) {
      const auto local = LocalShape(layout, shape, rank).value();
      int64_t owned = 1;
      for (const int64_t size : local) owned *= size;
      owned_by_all += owned;
    }
    ASSERT_EQ(owned_by_all, elements * replicas);
  }
}

}  // namespace
}  // namespace sluice
