// What budgets of streams come to.
#include "session/stream/stream_limits.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "session/shard/shard_runner.h"
#include "session/stream/stream_items.h"

namespace sluice {
namespace {

constexpr int64_t kKiB = int64_t{1} << 10;
constexpr int64_t kMiB = int64_t{1} << 20;

// Items of which only their sizes are known.
class SizedItems final : public StreamItems {
 public:
  explicit SizedItems(int64_t bytes, bool uniform = true, bool aligned = true)
      : bytes_(bytes), uniform_(uniform), aligned_(aligned) {}

  int64_t items() const override { return 1; }
  StreamItem At(int64_t) const override { return {.bytes = bytes_}; }
  DType DTypeOf(int64_t) const override { return DType::kU8; }
  std::vector<int64_t> ShapeOf(int64_t) const override { return {bytes_}; }
  int64_t item_bytes_max() const override { return bytes_; }
  bool uniform() const override { return uniform_; }
  bool aligned_to(int64_t alignment) const override { return aligned_ || alignment == 1; }
  std::vector<std::string> object_names() const override { return {}; }
  uint64_t fingerprint() const override { return 0; }

 private:
  const int64_t bytes_;
  const bool uniform_;
  const bool aligned_;
};

StreamOptions Budget(int64_t bytes) {
  StreamOptions options;
  options.reads.budget_bytes = bytes;
  return options;
}

// Of items that come one by one, a thousand of them.
absl::StatusOr<StreamLimits> Limits(const StreamOptions& options, const StreamItems& items,
                                    int64_t alignment = 1, int64_t to_come = 1000) {
  return ResolveStreamLimits(options, items, alignment, false, {.items_to_come = to_come});
}

TEST(StreamLimitsTest, TheFloorIsNamedWithItsParts) {
  StreamOptions options = Budget(4095);
  const SizedItems items(100);
  const absl::Status few = Limits(options, items).status();
  EXPECT_EQ(few.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(few.message(),
            "budget_bytes 4095 is too small: the least is 4096 = 1 x 4096 bytes (a piece of 100 "
            "bytes at alignment 1); piece_bytes makes pieces smaller");
  options.reads.budget_bytes = 4096;
  const auto least = Limits(options, items).value();
  EXPECT_EQ(least.slots, 1);
  EXPECT_EQ(least.spares, 0);

  options.reads.hedge.enabled = true;
  EXPECT_EQ(Limits(options, items).status().message(),
            "budget_bytes 4096 is too small: the least is 8192 = 2 x 4096 bytes (a piece of 100 "
            "bytes at alignment 1, and one more for a hedge); piece_bytes makes pieces smaller");
  options.reads.budget_bytes = 8192;
  const auto hedged = Limits(options, items).value();
  EXPECT_EQ(hedged.slots, 1);
  EXPECT_EQ(hedged.spares, 1);
}

TEST(StreamLimitsTest, BlocksHoldPiecesThatBeginAnywhere) {
  const auto aligned = Limits(Budget(kMiB), SizedItems(4096), 512);
  const auto anywhere = Limits(Budget(kMiB), SizedItems(4096, true, false), 512);
  ASSERT_TRUE(aligned.ok() && anywhere.ok());
  EXPECT_EQ(aligned->piece_bytes, 4096);
  EXPECT_EQ(aligned->block_bytes, 4096);
  EXPECT_EQ(anywhere->piece_bytes, 4096);
  EXPECT_EQ(anywhere->block_bytes, 8192);
  EXPECT_EQ(aligned->slots, 256);
  EXPECT_EQ(anywhere->slots, 128);
}

TEST(StreamLimitsTest, PiecesAreWholeCacheLinesOrWholeItems) {
  StreamOptions options = Budget(kMiB);
  options.reads.piece_bytes = 100;
  const SizedItems items(1000);
  const auto cut = Limits(options, items);
  const auto whole = ResolveStreamLimits(options, items, 1, true, {.items_to_come = 1});
  ASSERT_TRUE(cut.ok() && whole.ok());
  EXPECT_EQ(cut->piece_bytes, 128);
  EXPECT_EQ(whole->piece_bytes, 1000);
  const auto automatic = Limits(Budget(4 * kMiB), SizedItems(64 * kMiB)).value();
  EXPECT_EQ(automatic.piece_bytes, 512 * kKiB) << "an eighth";
  EXPECT_EQ(automatic.slots, 8);
}

TEST(StreamLimitsTest, HedgesTakeATwelfthAndNoMoreThanSlotsNeed) {
  StreamOptions options = Budget(120 * 4096);
  const SizedItems items(4096);
  const auto plain = Limits(options, items);
  options.reads.hedge.enabled = true;
  const auto hedged = Limits(options, items);
  const auto few = Limits(options, items, 1, 16);
  options.reads.slots = 5;
  const auto chosen = Limits(options, items);
  ASSERT_TRUE(plain.ok() && hedged.ok() && few.ok() && chosen.ok());
  EXPECT_EQ(plain->slots, 120);
  EXPECT_EQ(plain->spares, 0);
  EXPECT_EQ(hedged->slots, 110);
  EXPECT_EQ(hedged->spares, 10);
  EXPECT_EQ(few->slots, 16);
  EXPECT_EQ(few->spares, 2);
  EXPECT_EQ(chosen->slots, 5);
  EXPECT_EQ(chosen->spares, 2);
}

TEST(StreamLimitsTest, NoMoreSlotsThanPieces) {
  StreamOptions options = Budget(64 * kMiB);
  options.reads.piece_bytes = 256 * kKiB;
  const SizedItems items(kMiB);
  for (const int64_t to_come : {0, 1, 3, 63}) {
    const auto limits = Limits(options, items, 1, to_come).value();
    EXPECT_EQ(limits.slots, 4 * (to_come == 0 ? 1 : to_come));
  }
  // More pieces than can be counted.
  const auto endless = Limits(options, items, 1, int64_t{1} << 60).value();
  EXPECT_EQ(endless.slots, 256);
  // Two buffers of an item each, in pieces.
  EXPECT_EQ(endless.window, 256 + 2 * 4 + 64);
  options.order.in_order = false;
  const auto as_they_come = Limits(options, items).value();
  EXPECT_EQ(as_they_come.window, ShardRunner::WindowOf(256));
}

TEST(StreamLimitsTest, CellsHoldWhatTheTransformMakes) {
  StreamOptions options = Budget(kMiB);
  options.buffers.batch_items = 3;
  options.buffers.transform = ItemTransform{.src = DType::kU8, .dst = DType::kF32};
  const auto equal = Limits(options, SizedItems(100));
  const auto mixed = Limits(options, SizedItems(100, false));
  ASSERT_TRUE(equal.ok() && mixed.ok());
  EXPECT_EQ(equal->cell_bytes, 400);
  EXPECT_EQ(equal->buffer_bytes, 1216);
  EXPECT_EQ(mixed->cell_bytes, 448) << "each begins at a cache line";
  EXPECT_EQ(mixed->buffer_bytes, 1344);
}

TEST(StreamLimitsTest, SizesThatCannotBeCountedAreRefused) {
  StreamOptions options = Budget(64 * kMiB);
  options.buffers.batch_items = int64_t{1} << 40;
  const absl::Status buffers = Limits(options, SizedItems(kMiB)).status();
  EXPECT_EQ(buffers.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(buffers.message(),
            "2 device buffers of 1099511627776 items of 1048576 bytes are more than there can be "
            "memory for");
  constexpr int64_t kTooLarge = (int64_t{1} << 57) + 1;
  StreamOptions pieces = Budget(64 * kMiB);
  pieces.reads.piece_bytes = kTooLarge;
  for (const absl::Status& status : {Limits(Budget(64 * kMiB), SizedItems(kTooLarge)).status(),
                                     Limits(Budget(kTooLarge), SizedItems(100)).status(),
                                     Limits(pieces, SizedItems(100)).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "items, pieces or a budget of 144115188075855873 bytes are too large");
  }
}

}  // namespace
}  // namespace sluice
