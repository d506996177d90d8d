// What the runs of a transfer need to know of its plan.
#include "session/transfer/compiled_transfer.h"

#include <array>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/planned.h"
#include "session/transfer/tensor_parts.h"

namespace sluice {
namespace {

using session_test::FromZeroToOne;
using session_test::MakeLayout;
using session_test::PlanFor;
using testing::ElementsAre;

// One tensor of two buckets in window 2, and before it two in window 0: of one bucket, and of none.
std::vector<TensorTransfer> TwoWindows() {
  return {FromZeroToOne("late", {32}, 2), FromZeroToOne("soon", {16}), FromZeroToOne("none", {0})};
}

TEST(CompiledTransferTest, WindowsAreRangesOfBuckets) {
  const auto transfer = PlanFor(1, TwoWindows());
  ASSERT_EQ(transfer->windows().size(), 2u);
  const CompiledTransfer::Window& soon = transfer->windows()[0];
  EXPECT_EQ(soon.number, 0);
  EXPECT_EQ(soon.first_bucket, 0u);
  EXPECT_EQ(soon.end_bucket, 1u);
  EXPECT_THAT(soon.tensors, ElementsAre(1, 2));
  const CompiledTransfer::Window& late = transfer->windows()[1];
  EXPECT_EQ(late.number, 2);
  EXPECT_EQ(late.first_bucket, 1u);
  EXPECT_EQ(late.end_bucket, 3u);
  EXPECT_THAT(late.tensors, ElementsAre(0));
  EXPECT_THAT(transfer->windows_of_tensors(), ElementsAre(1, 0, 0));
  EXPECT_THAT(transfer->tensor_chunks(), ElementsAre(2, 1, 0));
}

TEST(CompiledTransferTest, PartsAreOfThisRanksLocalTensors) {
  TensorTransfer tensor = FromZeroToOne("a", {4, 6});
  tensor.dst = MakeLayout({2}, {0, 1}, "S(1)");
  tensor.dst_dtype = DType::kBF16;
  const auto transfer = PlanFor(1, {tensor});
  EXPECT_THAT(transfer->names(), ElementsAre("a"));
  const TensorParts& parts = transfer->parts();
  ASSERT_EQ(parts.parts(), 1u);
  EXPECT_FALSE(parts.Holds(0, false));
  EXPECT_TRUE(parts.Holds(0, true));
  std::array<uint16_t, 12> memory{};
  const auto bind = [&](bool is_dst, std::vector<int64_t> shape, DType dtype) {
    BoundView bound;
    return parts.Bind(0, is_dst, DenseView(memory.data(), shape, dtype), {}, {&bound, 1}).code();
  };
  EXPECT_EQ(bind(true, {4, 3}, DType::kBF16), absl::StatusCode::kOk);
  EXPECT_EQ(bind(true, {4, 6}, DType::kBF16), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(bind(true, {4, 3}, DType::kF32), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(bind(false, {9, 9}, DType::kF64), absl::StatusCode::kOk) << "it has no source";
}

TEST(TensorPartsTest, ATensorInBoxesIsBoundBoxByBox) {
  TensorTransfer tensor = FromZeroToOne("a", {4, 4});
  tensor.dst = {.boxes = *BoxList::Create({{1, {{{0, 0}, {4, 1}}, {{0, 1}, {4, 3}}}}})};
  const TransferSpec spec = {.tensors = {tensor}};
  const auto cells = CutIntoCells(spec).value();
  const auto parts = TensorParts::Make(spec, &cells, 1).value();
  ASSERT_EQ(parts.tensors(), 1u);
  ASSERT_EQ(parts.EndPart(0), 2u);
  EXPECT_TRUE(parts.Holds(1, true));
  EXPECT_FALSE(parts.Holds(1, false));
  std::array<float, 16> memory{};
  TensorView view;
  view.boxes = {TensorView(), TensorView()};
  EXPECT_TRUE(parts.IsNull(0, view));
  view.boxes = {DenseView(&memory[0], {4, 1}, DType::kF32),
                DenseView(&memory[4], {4, 3}, DType::kF32)};
  EXPECT_FALSE(parts.IsNull(0, view));
  std::array<BoundView, 2> bound;
  const MemoryRules rules;
  ASSERT_TRUE(parts.Bind(0, true, view, rules, absl::MakeSpan(bound)).ok());
  EXPECT_EQ(bound[0].base, reinterpret_cast<std::byte*>(&memory[0]));
  EXPECT_EQ(bound[1].base, reinterpret_cast<std::byte*>(&memory[4]));
  EXPECT_EQ(bound[1].shape[1], 3);
  view.boxes.pop_back();
  EXPECT_THAT(parts.Bind(0, true, view, rules, absl::MakeSpan(bound)),
              Fails(absl::StatusCode::kInvalidArgument, "views of 1 boxes, but this rank has 2"));
}

TEST(CompiledTransferTest, NumbersCountBytesOnceAtEachEnd) {
  const auto source = PlanFor(0, TwoWindows());
  EXPECT_EQ(source->stats().buckets, 3);
  EXPECT_EQ(source->stats().buckets_as_source, 3);
  EXPECT_EQ(source->stats().sent_bytes, 192);
  EXPECT_EQ(source->stats().received_bytes, 0);
  EXPECT_EQ(source->slot_bytes(), 64);
  EXPECT_EQ(source->operations_max(), 1);
  EXPECT_EQ(source->fold_sources_max(), 0);
  const auto target = PlanFor(1, TwoWindows());
  EXPECT_EQ(target->stats().buckets, 3);
  EXPECT_EQ(target->stats().buckets_as_source, 0);
  EXPECT_EQ(target->stats().received_bytes, 192);
  const auto neither = PlanFor(2, TwoWindows(), {0, 0, 0});
  EXPECT_EQ(neither->stats().buckets, 0);
  EXPECT_EQ(neither->slot_bytes(), 0);
}

// Rank 0 sends to the two ranks of another node, which hand a half each on to each other.
TEST(CompiledTransferTest, RanksThatHandOnSendFromTheirDestinations) {
  TensorTransfer tensor = FromZeroToOne("a", {1 << 20});
  tensor.dst = MakeLayout({2}, {1, 2}, "R");
  const std::vector<int> nodes = {0, 1, 1};
  const auto source = PlanFor(0, {tensor}, nodes, 1 << 20);
  EXPECT_TRUE(source->SendsSrc(0));
  EXPECT_FALSE(source->SendsDst(0));
  EXPECT_EQ(source->stats().sent_bytes, 4 << 20);
  for (const int rank : {1, 2}) {
    const auto head = PlanFor(rank, {tensor}, nodes, 1 << 20);
    EXPECT_FALSE(head->SendsSrc(0));
    EXPECT_TRUE(head->SendsDst(0));
    EXPECT_EQ(head->stats().sent_bytes, 2 << 20);
  }
  // On one node nobody hands on: each rank gets messages of its own.
  const auto near = PlanFor(0, {tensor}, {0, 0, 0}, 1 << 20);
  EXPECT_EQ(near->stats().channels, 2);
  EXPECT_EQ(near->operations_max(), 1);
  EXPECT_FALSE(PlanFor(1, {tensor}, {0, 0, 0}, 1 << 20)->SendsDst(0));
}

// An owner adds its own contribution where it lies, and sends none.
TEST(CompiledTransferTest, ContributorsSendAndOwnersFold) {
  TensorTransfer tensor = FromZeroToOne("a", {16});
  tensor.src = MakeLayout({3}, {0, 1, 2}, "P(sum)");
  const auto owner = PlanFor(1, {tensor}, {0, 0, 0});
  EXPECT_EQ(owner->fold_sources_max(), 3);
  EXPECT_FALSE(owner->SendsSrc(0));
  const auto contributor = PlanFor(2, {tensor}, {0, 0, 0});
  EXPECT_EQ(contributor->fold_sources_max(), 0);
  EXPECT_TRUE(contributor->SendsSrc(0));
}

}  // namespace
}  // namespace sluice
