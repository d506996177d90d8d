// Where a bucket's bytes lie, and what its stages are. Scripts of runners show the plain cases.
#include "session/transfer/bucket_sides.h"

#include <array>
#include <cstddef>
#include <deque>
#include <memory>

#include "gmock/gmock.h"
#include "session/planned.h"

namespace sluice {
namespace {

using session_test::FromZeroToOne;
using session_test::MakeLayout;
using session_test::PlanFor;

// One tensor on one rank, in the memory of its run.
class OneTensor {
 public:
  OneTensor(int rank, const TensorTransfer& tensor, const MemoryRules& memory = {},
            bool late = false)
      : transfer_(PlanFor(rank, {tensor}, {0, 0, 0})), run_(MakeRun(memory)) {
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

TensorTransfer Cast() {
  TensorTransfer tensor = FromZeroToOne("a", {16});
  tensor.dst_dtype = DType::kBF16;
  return tensor;
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

}  // namespace
}  // namespace sluice
