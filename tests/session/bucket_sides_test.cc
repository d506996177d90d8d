// Where a bucket's bytes lie, what its stages are, and what its copies do.
#include "session/transfer/bucket_sides.h"

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <numeric>

#include "gmock/gmock.h"
#include "session/planned.h"

namespace sluice {
namespace {

using session_test::FromZeroToOne;
using session_test::MakeLayout;
using session_test::PlanFor;
using testing::ElementsAre;

// One tensor on one rank, in the memory of its run; the source has 0, 1, 2 ...
class OneTensor {
 public:
  OneTensor(int rank, const TensorTransfer& tensor, const MemoryRules& memory = {},
            bool late = false)
      : transfer_(PlanFor(rank, {tensor}, {0, 0, 0})), run_(MakeRun(memory)) {
    std::iota(src_.begin(), src_.end(), 0.0F);
    run_.Reset(1, {.late_destinations = late});
    TensorView dst = ViewOf(rank, tensor.dst, tensor.dst_dtype, dst_.data());
    if (late) dst.data = nullptr;
    const TensorView src = ViewOf(rank, tensor.src, tensor.src_dtype, src_.data());
    const absl::Status status = run_.Bind({src}, {dst});
    SLUICE_CHECK(status.ok(), "a test's views are good");
    run_.Release();
  }

  const Bucket& bucket(size_t index) const { return transfer_->plan().buckets[index]; }
  const Chunk& chunk(size_t index) const { return ChunksOf(transfer_->plan(), bucket(index))[0]; }
  BucketPart part(size_t index = 0) const { return PartOf(run_, bucket(index)); }
  const std::byte* src() const { return reinterpret_cast<const std::byte*>(src_.data()); }
  const std::byte* dst() const { return reinterpret_cast<const std::byte*>(dst_.data()); }
  const std::array<float, 64>& values() const { return dst_; }
  TransferRun& run() { return run_; }

 private:
  TransferRun MakeRun(const MemoryRules& memory) {
    transfer_->memory = memory;
    return {transfer_.get(), &events_};
  }
  TensorView ViewOf(int rank, const Layout& layout, DType dtype, void* data) const {
    return DenseView(data, *LocalShape(layout, transfer_->spec().tensors[0].shape, rank), dtype);
  }

  std::unique_ptr<CompiledTransfer> transfer_;
  std::deque<RunEvent> events_;
  TransferRun run_;
  std::array<float, 64> src_{};
  std::array<float, 64> dst_{};
};

// The left half of four rows is rank 1's, the right half rank 2's.
TensorTransfer Columns() {
  TensorTransfer tensor = FromZeroToOne("a", {4, 4});
  tensor.dst = MakeLayout({2}, {1, 2}, "S(1)");
  return tensor;
}

TensorTransfer Cast() {
  TensorTransfer tensor = FromZeroToOne("a", {16});
  tensor.dst_dtype = DType::kBF16;
  return tensor;
}

TEST(BucketSidesTest, WholeStretchesCrossFromMemoryToMemory) {
  const OneTensor source(0, FromZeroToOne("a", {32}));
  for (const size_t bucket : {0, 1}) {
    const BucketPart part = source.part(bucket);
    EXPECT_EQ(part.stages, kStageMove);
    EXPECT_EQ(part.src.data, source.src() + 64 * bucket);
    EXPECT_TRUE(part.src.one_stretch());
    EXPECT_EQ(part.dst.data, nullptr);
    EXPECT_EQ(part.staging_bytes, 0);
  }
  const OneTensor target(1, FromZeroToOne("a", {32}));
  const BucketPart part = target.part(1);
  EXPECT_EQ(part.stages, kStageMove);
  EXPECT_EQ(part.src.data, nullptr);
  EXPECT_EQ(part.dst.data, target.dst() + 64);
  EXPECT_EQ(part.staging_bytes, 0);
}

TEST(BucketSidesTest, TheEndThatCastsUsesItsSlot) {
  const BucketPart source = OneTensor(0, Cast()).part();
  EXPECT_EQ(source.stages, kStageFill | kStageMove);
  EXPECT_EQ(source.src.data, nullptr);
  EXPECT_EQ(source.staging_bytes, 32);
  const OneTensor target(1, Cast());
  EXPECT_EQ(target.part().stages, kStageMove);
  EXPECT_EQ(target.part().dst.data, target.dst());
}

TEST(BucketSidesTest, ShortRowsUseASlot) {
  const BucketPart part = OneTensor(0, Columns()).part();
  EXPECT_EQ(part.stages, kStageFill | kStageMove);
  EXPECT_EQ(part.staging_bytes, 32);
}

TEST(BucketSidesTest, ATransportThatTakesSlotsAloneGetsThem) {
  const MemoryRules staged = {.takes_host_memory = false};
  const BucketPart source = OneTensor(0, FromZeroToOne("a", {16}), staged).part();
  EXPECT_EQ(source.stages, kStageFill | kStageMove);
  EXPECT_EQ(source.staging_bytes, 64);
  const BucketPart target = OneTensor(1, FromZeroToOne("a", {16}), staged).part();
  EXPECT_EQ(target.stages, kStageMove | kStageDrain);
  EXPECT_EQ(target.staging_bytes, 64);
}

TEST(BucketSidesTest, ACopyWithinTheRankIsOneDrain) {
  TensorTransfer tensor = FromZeroToOne("a", {2, 4});
  tensor.dst = tensor.src;
  OneTensor local(0, tensor);
  EXPECT_EQ(local.part().stages, kStageDrain);
  EXPECT_EQ(local.part().staging_bytes, 0);
  CopyStrided(LocalCopy(local.run(), local.chunk(0)));
  EXPECT_THAT(absl::MakeConstSpan(local.values()).first(9), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 0));
}

// The owner folds where it may: one operation brings the sum to its destination.
TEST(BucketSidesTest, AnOwnerFoldsOrReceivesIntoItsSlot) {
  TensorTransfer tensor = FromZeroToOne("a", {16});
  tensor.src = MakeLayout({2}, {0, 1}, "P(sum)");
  const OneTensor folding(1, tensor, {.takes_folds = true});
  EXPECT_TRUE(folding.part().folds);
  EXPECT_EQ(folding.part().stages, kStageMove);
  EXPECT_EQ(folding.part().src.data, folding.src());
  EXPECT_EQ(folding.part().dst.data, folding.dst());
  EXPECT_EQ(folding.part().staging_bytes, 0);
  const OneTensor adding(1, tensor);
  EXPECT_FALSE(adding.part().folds);
  EXPECT_EQ(adding.part().stages, kStageMove | kStageDrain);
  EXPECT_EQ(adding.part().dst.data, nullptr);
  EXPECT_GT(adding.part().staging_bytes, 0);
  // Who contributes and does not add sends from where it lies.
  const OneTensor contributor(0, tensor);
  EXPECT_EQ(contributor.part().stages, kStageMove);
  EXPECT_EQ(contributor.part().src.data, contributor.src());
}

TEST(BucketSidesTest, WhatHasNowhereToGoIsReceivedAndDropped) {
  OneTensor target(1, FromZeroToOne("a", {32}), {}, true);
  EXPECT_FALSE(target.part().drops);
  EXPECT_FALSE(IsDropped(target.run(), target.chunk(0)));
  target.run().CutAt(target.bucket(0).id.WithRun(1));
  EXPECT_TRUE(IsDropped(target.run(), target.chunk(0)));
  const BucketPart part = target.part();
  EXPECT_TRUE(part.drops);
  EXPECT_EQ(part.stages, kStageMove);
  EXPECT_EQ(part.dst.data, nullptr);
  EXPECT_EQ(part.staging_bytes, 64);
}

TEST(BucketSidesTest, PackingGathersAndUnpackingScatters) {
  std::array<float, 8> wire{};
  auto* const bytes = reinterpret_cast<std::byte*>(wire.data());
  OneTensor source(0, Columns());
  ASSERT_EQ(source.bucket(1).bytes, 32);
  CopyStrided(PackCopy(source.run(), source.chunk(1), bytes));
  EXPECT_THAT(wire, ElementsAre(2, 3, 6, 7, 10, 11, 14, 15));
  // Rows of two columns become the left half of rows of four.
  TensorTransfer tensor = FromZeroToOne("a", {4, 4});
  tensor.src = MakeLayout({2}, {0, 2}, "S(1)");
  OneTensor target(1, tensor);
  ASSERT_EQ(target.bucket(0).bytes, 32);
  CopyStrided(UnpackCopy(target.run(), target.chunk(0), bytes));
  EXPECT_THAT(absl::MakeConstSpan(target.values()).first(16),
              ElementsAre(2, 3, 0, 0, 6, 7, 0, 0, 10, 11, 0, 0, 14, 15, 0, 0));
}

TEST(BucketSidesTest, APackCastsToTheWire) {
  OneTensor source(0, Cast());
  std::array<uint16_t, 16> wire{};
  CopyStrided(PackCopy(source.run(), source.chunk(0), reinterpret_cast<std::byte*>(wire.data())));
  // The upper halves of 0.0f, 1.0f, 2.0f, 3.0f.
  EXPECT_THAT(absl::MakeConstSpan(wire).first(4), ElementsAre(0, 0x3F80, 0x4000, 0x4040));
}

}  // namespace
}  // namespace sluice
