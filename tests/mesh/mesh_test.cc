// Meshes: what Create takes and refuses, and who stands where.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/layout.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Status CreateStatus(std::vector<int64_t> sizes, std::vector<int> ranks) {
  return Mesh::Create(std::move(sizes), std::move(ranks)).status();
}

TEST(MeshTest, KeepsSizesAndRanksInTheirOrder) {
  const auto mesh = Mesh::Create({2, 3}, {9, 4, 7, 0, 100, 2}).value();
  EXPECT_THAT(mesh.sizes(), ElementsAre(2, 3));
  EXPECT_THAT(mesh.ranks(), ElementsAre(9, 4, 7, 0, 100, 2));
}

TEST(MeshTest, PositionIsThePlaceInTheRankList) {
  const auto mesh = Mesh::Create({2, 3}, {9, 4, 7, 0, 100, 2}).value();
  for (size_t i = 0; i < mesh.ranks().size(); ++i) {
    EXPECT_EQ(mesh.PositionOf(mesh.ranks()[i]), static_cast<int64_t>(i));
  }
  for (const int stranger : {-1, 1, 3, 5, 8, 99, 101}) {
    EXPECT_EQ(mesh.PositionOf(stranger), std::nullopt) << stranger;
  }
}

TEST(MeshTest, PlaceholderHasNoRanks) {
  const Mesh mesh;
  EXPECT_THAT(mesh.sizes(), IsEmpty());
  EXPECT_THAT(mesh.ranks(), IsEmpty());
  EXPECT_EQ(mesh.PositionOf(0), std::nullopt);
}

TEST(MeshTest, EqualContentIsEqual) {
  const auto a = Mesh::Create({2, 2}, {0, 1, 2, 3});
  const auto b = Mesh::Create({2, 2}, {0, 1, 2, 3});
  const auto other_order = Mesh::Create({2, 2}, {0, 2, 1, 3});
  const auto other_sizes = Mesh::Create({4}, {0, 1, 2, 3});
  ASSERT_TRUE(a.ok() && b.ok() && other_order.ok() && other_sizes.ok());
  EXPECT_TRUE(*a == *b);
  EXPECT_FALSE(*a == *other_order);
  EXPECT_FALSE(*a == *other_sizes);
  const Mesh copy = *a;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(copy.identity(), a->identity());
}

TEST(MeshTest, RefusesWhatIsNotAMesh) {
  const struct {
    const char* what;
    std::vector<int64_t> sizes;
    std::vector<int> ranks;
  } cases[] = {
      {"too few ranks", {2, 2}, {0, 1, 2}},
      {"too many ranks", {2, 2}, {0, 1, 2, 3, 4}},
      {"no ranks", {2}, {}},
      {"size zero", {0}, {}},
      {"size zero among others", {2, 0}, {0, 1}},
      {"negative size", {-2}, {0, 1}},
      {"two negative sizes", {-1, -2}, {0, 1}},
      {"rank twice", {3}, {0, 1, 0}},
      {"rank twice, side by side", {4}, {3, 5, 5, 1}},
      {"negative rank", {2}, {0, -1}},
      {"sizes overflow", {int64_t{1} << 32, int64_t{1} << 32}, {0}},
      {"sizes overflow to the number of ranks", {(int64_t{1} << 62) + 1, 4}, {0, 1, 2, 3}},
      {"largest sizes",
       {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()},
       {0}},
  };
  for (const auto& bad : cases) {
    EXPECT_EQ(CreateStatus(bad.sizes, bad.ranks).code(), absl::StatusCode::kInvalidArgument)
        << bad.what;
  }
}

TEST(MeshTest, MessageNamesTheRankThatIsListedTwice) {
  EXPECT_THAT(std::string(CreateStatus({3}, {41, 1, 41}).message()), HasSubstr("41"));
}

TEST(MeshTest, MessageNamesTheNegativeRank) {
  EXPECT_THAT(std::string(CreateStatus({2}, {3, -17}).message()), HasSubstr("-17"));
}

TEST(MeshTest, ARangeHasConsecutiveRanks) {
  const Mesh mesh = Mesh::Range({2, 3}, 4).value();
  EXPECT_THAT(mesh.sizes(), ElementsAre(2, 3));
  EXPECT_THAT(mesh.ranks(), ElementsAre(4, 5, 6, 7, 8, 9));
  EXPECT_THAT(Mesh::Range({2})->ranks(), ElementsAre(0, 1));
  const auto refused = [](std::vector<int64_t> sizes, int first) {
    return std::string(Mesh::Range(std::move(sizes), first).status().message());
  };
  EXPECT_THAT(refused({2, 0}, 0), HasSubstr("sizes must be 1 or more"));
  EXPECT_THAT(refused({}, 0), HasSubstr("no dimensions"));
  EXPECT_THAT(refused({2}, -1), HasSubstr("is negative"));
  EXPECT_THAT(refused({Mesh::kRangeRanksMax, 2}, 0), HasSubstr("more than 1048576"));
  EXPECT_THAT(refused({2}, std::numeric_limits<int>::max()), HasSubstr("no int holds"));
}

}  // namespace
}  // namespace sluice
