// A rank's stretches against the layouts' own ranges.
#include "workload/local_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "workload/make_layout.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The flat indices that a rank owns, checking that runs follow each other without a gap.
std::vector<int64_t> Owned(const Layout& layout, const std::vector<int64_t>& shape, int rank) {
  const auto part = LocalPart::Create(layout, shape, rank);
  EXPECT_TRUE(part.ok()) << part.status();
  std::vector<int64_t> indices;
  part->ForEachRun([&](int64_t local, int64_t global, int64_t count) {
    EXPECT_EQ(local, static_cast<int64_t>(indices.size()));
    for (int64_t i = 0; i < count; ++i) indices.push_back(global + i);
  });
  EXPECT_EQ(part->elements(), static_cast<int64_t>(indices.size()));
  if (!indices.empty()) {
    EXPECT_EQ(part->first(), indices.front());
    EXPECT_EQ(part->last(), indices.back());
  }
  return indices;
}

TEST(LocalPart, FollowsTheExamplesOfTheLayoutRule) {
  EXPECT_THAT(Owned(MakeLayout({4}, "S(0)"), {10}, 3), ElementsAre(9));
  const Layout twice = MakeLayout({2, 3}, "S(0),S(0)");
  EXPECT_THAT(Owned(twice, {10}, 2), ElementsAre(4));
  EXPECT_THAT(Owned(twice, {10}, 3), ElementsAre(5, 6));
  const Layout strided = MakeLayout({2, 2}, "SS(0,2),S(0)");
  EXPECT_THAT(Owned(strided, {8}, 1), ElementsAre(4, 5));
  EXPECT_THAT(Owned(strided, {8}, 2), ElementsAre(2, 3));
  const Layout uneven = MakeLayout({3, 2}, "SS(0,2),S(0)");
  EXPECT_THAT(Owned(uneven, {7}, 4), ElementsAre(6));
  EXPECT_THAT(Owned(uneven, {7}, 5), IsEmpty());
  const Layout columns = MakeLayout({2, 2, 2}, "S(1),R,S(0)");
  EXPECT_THAT(Owned(columns, {3, 4}, 0), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(Owned(columns, {3, 4}, 3), ElementsAre(8, 9));
  EXPECT_THAT(Owned(columns, {3, 4}, 4), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(Owned(columns, {3, 4}, 7), ElementsAre(10, 11));
}

TEST(LocalPart, AStridedShardAloneIsNotContiguous) {
  EXPECT_THAT(Owned(MakeLayout({2}, "SS(0,2)"), {8}, 1), ElementsAre(2, 3, 6, 7));
}

TEST(LocalPart, WholeTrailingDimensionsMakeOneRun) {
  const auto part = LocalPart::Create(MakeLayout({2}, "S(1)"), std::vector<int64_t>{2, 4, 3, 5}, 1);
  ASSERT_TRUE(part.ok());
  std::vector<int64_t> lengths;
  part->ForEachRun([&](int64_t, int64_t, int64_t count) { lengths.push_back(count); });
  EXPECT_THAT(lengths, ElementsAre(30, 30));
}

TEST(LocalPart, BoxesLieOneAfterTheOther) {
  Layout layout;
  layout.boxes =
      BoxList::Create({{1, {{{2, 1}, {2, 2}}, {{0, 0}, {1, 4}}}}, {4, {{{0, 0}, {4, 4}}}}}).value();
  const auto part = LocalPart::Create(layout, {4, 4}, 1);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->shape(), std::vector<int64_t>({8}));
  EXPECT_EQ(part->first(), 9);
  EXPECT_EQ(part->last(), 3);
  std::vector<int64_t> global(8, -1);
  part->ForEachRun([&](int64_t local, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) global[static_cast<size_t>(local + i)] = first + i;
  });
  EXPECT_EQ(global, std::vector<int64_t>({9, 10, 13, 14, 0, 1, 2, 3}));
  std::vector<std::byte> memory(8);
  const TensorView view = part->View(memory.data(), DType::kU8);
  ASSERT_EQ(view.boxes.size(), 2u);
  EXPECT_EQ(view.boxes[0].shape, std::vector<int64_t>({2, 2}));
  EXPECT_EQ(view.boxes[1].data, memory.data() + 4);
  EXPECT_EQ(LocalPart::Create(layout, {4, 4}, 0)->elements(), 0);
}

TEST(LocalPart, NothingIsOwnedOutsideTheMeshOrOfNothing) {
  const auto outside = LocalPart::Create(MakeLayout({2}, "S(0)"), std::vector<int64_t>{4}, 7);
  ASSERT_TRUE(outside.ok());
  EXPECT_EQ(outside->elements(), 0);
  EXPECT_FALSE(outside->first().has_value());
  const auto zero = LocalPart::Create(MakeLayout({2}, "S(0)"), std::vector<int64_t>{4, 0}, 0);
  ASSERT_TRUE(zero.ok());
  EXPECT_THAT(zero->shape(), ElementsAre(2, 0));
  EXPECT_FALSE(zero->last().has_value());
}

}  // namespace
}  // namespace sluice::bench
