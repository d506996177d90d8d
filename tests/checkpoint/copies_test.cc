// Copies between a box of a checkpoint, a packed part of it, and a local tensor.
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/checkpoint/checkpoint_copies.h"
#include "session/checkpoint/checkpoint_work.h"

namespace sluice {
namespace {

using testing::ElementsAre;

template <typename T, size_t N>
std::byte* BytesOf(std::array<T, N>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

// Of a box of 2 x 6 elements: columns 1, 2 and 5 of both rows.
class CheckpointCopiesTest : public testing::Test {
 protected:
  CheckpointPart Part() {
    rows_[0] = {0, 0, 2};
    columns_[0] = {1, 0, 2};
    columns_[1] = {5, 2, 1};
    CheckpointPart part;
    part.dims = 2;
    part.runs[0] = rows_;
    part.runs[1] = columns_;
    part.extent = {2, 3};
    part.box_size = {2, 6};
    part.elements = 6;
    return part;
  }

  std::array<sluice::Stretch, 1> rows_;
  std::array<sluice::Stretch, 2> columns_;
};

// The part begins at row 1, column 2 of a local tensor of 3 x 5, after a fixed dimension.
TEST_F(CheckpointCopiesTest, APackedPartGoesToItsPlaceInALocalTensor) {
  CheckpointPart part = Part();
  part.first_dim = 1;
  part.local_begin = {1, 1, 2};
  std::array<uint16_t, 30> local{};
  BoundView view;
  view.base = BytesOf(local);
  view.dims = 3;
  view.stride_bytes = {30, 10, 2};
  view.kind = DeviceKind::kCudaHost;
  const CheckpointSide side = LocalSide(part, view, DType::kU16);
  EXPECT_EQ(side.base, BytesOf(local) + 30 + 10 + 4);
  EXPECT_EQ(side.strides[0], 10);
  EXPECT_EQ(side.strides[1], 2);
  EXPECT_EQ(side.kind, DeviceKind::kCudaHost);
  std::array<uint16_t, 6> packed = {1, 2, 3, 4, 5, 6};
  WholeRuns runs;
  CopyStrided(PartCopy(part, PackedSide(part, BytesOf(packed), DType::kU16), side, &runs));
  EXPECT_THAT(absl::MakeConstSpan(local).subspan(20, 10),
              ElementsAre(0, 0, 1, 2, 3, 0, 0, 4, 5, 6));
  EXPECT_EQ(std::accumulate(local.begin(), local.end(), 0), 21);
}

// One run of `columns` of each of two rows of twice as many.
std::optional<Rows> RowsOfHalf(int64_t columns, CheckpointFlow flow) {
  const bool load = flow == CheckpointFlow::kLoad;
  const std::array<Stretch, 1> rows = {Stretch{0, 0, 2}};
  const std::array<Stretch, 1> half = {load ? Stretch{columns, 0, columns}
                                            : Stretch{0, columns, columns}};
  CheckpointPart part;
  part.dims = 2;
  part.runs[0] = rows;
  part.runs[1] = half;
  part.extent = {2, columns};
  part.box_size = {2, 2 * columns};
  part.elements = 2 * columns;
  return RowsInBox(part, flow, DType::kU16);
}

TEST_F(CheckpointCopiesTest, LongRowsCrossAsTheyLie) {
  for (const CheckpointFlow flow : {CheckpointFlow::kLoad, CheckpointFlow::kSave}) {
    const std::optional<Rows> rows = RowsOfHalf(128, flow);
    ASSERT_TRUE(rows.has_value());
    EXPECT_EQ(rows->count, 2);
    EXPECT_EQ(rows->offset, 256);
    EXPECT_EQ(rows->row_bytes, 256);
    EXPECT_EQ(rows->stride_bytes, 512);
    EXPECT_FALSE(RowsOfHalf(127, flow).has_value());
  }
}

TEST_F(CheckpointCopiesTest, OneStretchCrossesHoweverShort) {
  const std::array<sluice::Stretch, 1> run = {sluice::Stretch{3, 0, 2}};
  CheckpointPart part;
  part.runs[0] = run;
  part.extent = {2};
  part.box_size = {8};
  part.elements = 2;
  const std::optional<Rows> rows = RowsInBox(part, CheckpointFlow::kLoad, DType::kU16);
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->count, 1);
  EXPECT_EQ(rows->offset, 6);
  EXPECT_FALSE(RowsInBox(Part(), CheckpointFlow::kLoad, DType::kU16));
}

TEST_F(CheckpointCopiesTest, PackedPartsBeginBehindTheBox) {
  EXPECT_EQ(PackedOffset(0), 0);
  EXPECT_EQ(PackedOffset(1), 64);
  EXPECT_EQ(PackedOffset(64), 64);
  EXPECT_EQ(PackedOffset(65), 128);
}

}  // namespace
}  // namespace sluice
