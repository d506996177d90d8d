// Rows of regions, against the offsets of all their elements.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tensor/contiguity.h"

namespace sluice {
namespace {

// A region with one run in each dimension.
struct Region {
  std::vector<Stretch> runs;
  std::vector<int64_t> strides;
  int64_t element_bytes = 1;

  int64_t elements() const {
    int64_t product = 1;
    for (const Stretch& run : runs) product *= run.length;
    return product;
  }
  int64_t OffsetOf(int64_t element) const {
    int64_t offset = 0;
    for (size_t d = runs.size(); d-- > 0;) {
      offset += (runs[d].src + element % runs[d].length) * strides[d];
      element /= runs[d].length;
    }
    return offset;
  }
};

std::optional<Rows> Find(const Region& region, int64_t begin, int64_t end) {
  std::vector<absl::Span<const Stretch>> runs;
  for (const Stretch& run : region.runs) runs.push_back(absl::MakeConstSpan(&run, 1));
  return RowsOf({runs, &Stretch::src, region.strides, region.element_bytes}, begin, end);
}

Region RandomRegion(std::mt19937_64& random) {
  const auto upto = [&random](int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most)) + 1;
  };
  Region region;
  region.element_bytes = int64_t{1} << (random() % 4);
  const size_t dims = static_cast<size_t>(upto(4));
  region.runs.resize(dims);
  region.strides.resize(dims);
  int64_t stride = region.element_bytes * (random() % 4 == 0 ? 2 : 1);
  for (size_t d = dims; d-- > 0;) {
    const int64_t length = upto(5);
    region.runs[d] = {upto(3) - 1, 0, length};
    region.strides[d] = stride;
    stride *= random() % 2 == 0 ? length : length + upto(3);
  }
  // Sources may repeat themselves (stride 0), overlap themselves and have any order of dimensions.
  for (int64_t& each : region.strides) {
    if (random() % 8 == 0) each = 0;
    if (random() % 8 == 0) each = region.element_bytes * (upto(12) - 1);
  }
  if (random() % 3 == 0) std::shuffle(region.strides.begin(), region.strides.end(), random);
  return region;
}

TEST(RowsTest, NameEveryElementInOrder) {
  std::mt19937_64 random(1);
  int found = 0, several = 0, repeated = 0;
  for (int i = 0; i < 20000; ++i) {
    const Region region = RandomRegion(random);
    const int64_t elements = region.elements();
    const int64_t begin = static_cast<int64_t>(random() % static_cast<uint64_t>(elements));
    const int64_t end =
        begin + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(elements - begin));
    const std::optional<Rows> rows = Find(region, begin, end);
    if (!rows) continue;
    ++found;
    several += rows->count > 1 ? 1 : 0;
    repeated += rows->count > 1 && rows->stride_bytes == 0 ? 1 : 0;
    ASSERT_EQ(rows->count * rows->row_bytes, (end - begin) * region.element_bytes);
    for (int64_t e = begin; e < end; ++e) {
      const int64_t at = (e - begin) * region.element_bytes;
      ASSERT_EQ(region.OffsetOf(e),
                rows->offset + at / rows->row_bytes * rows->stride_bytes + at % rows->row_bytes);
    }
  }
  EXPECT_GT(found, 5000);
  EXPECT_GT(several, 1000);
  EXPECT_GT(repeated, 100);
}

TEST(RowsTest, RepeatsARowOnlyWhereAllOuterDimensionsDo) {
  // [2, 3, 4] bytes of which the middle dimension repeats: two rows, thrice each.
  const Region middle = {{{0, 0, 2}, {0, 0, 3}, {0, 0, 4}}, {4, 0, 1}, 1};
  EXPECT_EQ(Find(middle, 0, 24), std::nullopt);
  EXPECT_EQ(Find(middle, 12, 24), std::nullopt);
  const Region outer = {{{0, 0, 2}, {0, 0, 3}, {0, 0, 4}}, {0, 0, 1}, 1};
  EXPECT_EQ(Find(outer, 0, 24), (Rows{0, 6, 4, 0}));
  EXPECT_EQ(Find(outer, 8, 16), (Rows{0, 2, 4, 0}));
}

TEST(RowsTest, FindsTheRowsOfABlock) {
  // Columns 2..4 of 3 rows of 10 floats, from row 1 on.
  const Region block = {{{1, 0, 3}, {2, 0, 3}}, {40, 4}, 4};
  EXPECT_EQ(Find(block, 0, 9), (Rows{48, 3, 12, 40}));
  EXPECT_EQ(Find(block, 3, 9), (Rows{88, 2, 12, 40}));
  EXPECT_EQ(Find(block, 1, 9), std::nullopt);  // begins within a row
  EXPECT_EQ(Find(block, 0, 3), (Rows{48, 1, 12, 0}));
}

TEST(RowsTest, LeavesUnevenDistancesToOthers) {
  // Two planes of two rows each, with a gap between the planes.
  const Region planes = {{{0, 0, 2}, {0, 0, 2}, {0, 0, 3}}, {100, 10, 1}, 1};
  EXPECT_EQ(Find(planes, 0, 12), std::nullopt);
  const std::array<sluice::Stretch, 2> two = {{{0, 0, 2}, {4, 2, 2}}};
  const std::array<sluice::Stretch, 1> one = {{{0, 0, 2}}};
  const std::array<absl::Span<const sluice::Stretch>, 2> runs = {two, one};
  const std::array<int64_t, 2> strides = {10, 1};
  EXPECT_EQ(RowsOf({runs, &sluice::Stretch::src, strides, 1}, 0, 8), std::nullopt);
}

}  // namespace
}  // namespace sluice
