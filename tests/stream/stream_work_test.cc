// The pieces of a stream's items: who reads them, who gets them, and where they go.
#include "session/stream/stream_work.h"

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/stream/catalog_items.h"

namespace sluice {
namespace {

using testing::SizeIs;

constexpr StageSet kAll = kStageFill | kStageMove | kStageDrain;

// Three items of 100 bytes in one object, which ranks 0 and 1 both take, in pieces of 64 bytes.
// Rank 0 reads.
class StreamWorkTest : public testing::Test {
 protected:
  void Open(int rank, bool in_order = true, bool exchange = true) {
    StreamPlanOptions options;
    options.items = items_.items();
    options.exchange = exchange;
    options.places = {{0, 1, 3}, {0, 1, 3}};
    plan_ = std::make_unique<StreamPlan>(options, rank);
    DeliveryMemory memory;
    memory.data = buffers_.data();
    memory.stride = 128;
    delivery_ = std::make_shared<Delivery>(std::move(memory), 2, 1);
    cells_ = std::make_unique<DeviceCells>(delivery_.get(), 1, 128, in_order);
    StreamWorkOptions work;
    work.piece_bytes = 64;
    work.window = 8;
    work.in_order = in_order;
    work_ = std::make_unique<StreamWork>(plan_.get(), rank, &items_, cells_.get(), work);
  }
  ShardPiece Next() {
    ShardPiece piece;
    EXPECT_TRUE(work_->NextPiece(&piece));
    return piece;
  }
  std::vector<TransportOp> MessagesOf(const ShardPiece& piece) {
    std::vector<TransportOp> messages;
    work_->AddMessages(piece, block_.data(), 7, &messages);
    return messages;
  }
  // All of a piece's way from its arrival on.
  void Finish(const ShardPiece& piece) {
    work_->Arrived(piece);
    ASSERT_TRUE(work_->MayDrain(piece));
    EXPECT_TRUE(work_->Done(piece, block_.data()).ok());
  }
  bool is_ready() const { return delivery_->state() == Delivery::State::kReady; }

  const GeneratedItems items_{3, 100, absl::nullopt};
  std::array<std::byte, 256> buffers_{};
  std::array<std::byte, 64> block_{};
  std::unique_ptr<StreamPlan> plan_;
  std::shared_ptr<Delivery> delivery_;
  std::unique_ptr<DeviceCells> cells_;
  std::unique_ptr<StreamWork> work_;
};

TEST_F(StreamWorkTest, ItemsAreCutIntoPiecesInTheOrderOfTheirIds) {
  Open(0);
  BucketId before;
  for (int64_t item = 0; item < 3; ++item) {
    for (const int64_t part : {0, 1}) {
      const ShardPiece piece = Next();
      EXPECT_EQ(piece.read.item, item);
      EXPECT_EQ(piece.read.offset, 100 * item + 64 * part);
      EXPECT_EQ(piece.bytes, part == 0 ? 64 : 36);
      EXPECT_EQ(piece.read.bytes, piece.bytes);
      EXPECT_EQ(piece.stages, kAll);
      EXPECT_TRUE(item + part == 0 || piece.id > before);
      before = piece.id;
    }
  }
  EXPECT_TRUE(work_->over());
  ShardPiece none;
  EXPECT_FALSE(work_->NextPiece(&none));
}

TEST_F(StreamWorkTest, TheReaderSendsAndTheOthersReceive) {
  Open(0);
  const ShardPiece sent = Next();
  const std::vector<TransportOp> sends = MessagesOf(sent);
  ASSERT_THAT(sends, SizeIs(1));
  EXPECT_EQ(sends[0].kind, TransportOp::Kind::kSend);
  EXPECT_EQ(sends[0].peer, 1);
  EXPECT_EQ(sends[0].data, block_.data());
  EXPECT_EQ(sends[0].bytes, 64u);
  EXPECT_EQ(sends[0].cookie, 7u);
  Open(1);
  const ShardPiece received = Next();
  EXPECT_EQ(received.stages, kStageMove | kStageDrain);
  EXPECT_EQ(received.id, sent.id);
  const std::vector<TransportOp> receives = MessagesOf(received);
  ASSERT_THAT(receives, SizeIs(1));
  EXPECT_EQ(receives[0].kind, TransportOp::Kind::kReceive);
  EXPECT_EQ(receives[0].peer, 0);
  EXPECT_EQ(receives[0].tag, sends[0].tag);
}

TEST_F(StreamWorkTest, WithoutAnExchangeEachRankReads) {
  Open(1, true, false);
  EXPECT_EQ(Next().stages, kStageFill | kStageDrain);
}

TEST_F(StreamWorkTest, AnItemIsThereWithItsLastPiece) {
  Open(0);
  const ShardPiece first = Next();
  const ShardPiece second = Next();
  Finish(second);
  EXPECT_FALSE(is_ready());
  EXPECT_EQ(work_->items_done(), 0);
  Finish(first);
  EXPECT_TRUE(is_ready());
  EXPECT_EQ(work_->items_done(), 1);
  EXPECT_EQ(work_->bytes_done(), 100);
  const Lease lease = Delivery::Take(delivery_);
  EXPECT_EQ(lease.item(), 0);
  EXPECT_EQ(lease.view().shape[0], 100);
}

// Three items, and buffers for two.
TEST_F(StreamWorkTest, InOrderAnItemWaitsForThoseBeforeIt) {
  Open(0);
  std::array<ShardPiece, 6> pieces;
  for (ShardPiece& piece : pieces) piece = Next();
  work_->Arrived(pieces[4]);
  EXPECT_FALSE(work_->MayDrain(pieces[4]));
  EXPECT_TRUE(work_->MayDrain(pieces[2]));  // its buffer was granted with the third's question
  EXPECT_TRUE(work_->MayDrain(pieces[0]));
}

TEST_F(StreamWorkTest, OutOfOrderAWholeItemGoesFirst) {
  Open(0, false);
  std::array<ShardPiece, 6> pieces;
  for (ShardPiece& piece : pieces) piece = Next();
  work_->Arrived(pieces[4]);
  EXPECT_FALSE(work_->MayDrain(pieces[4])) << "half of it is not here";
  work_->Arrived(pieces[5]);
  EXPECT_TRUE(work_->MayDrain(pieces[4]));
  EXPECT_TRUE(work_->MayDrain(pieces[0])) << "the first item waits for nothing";
  EXPECT_FALSE(work_->MayDrain(pieces[2])) << "both buffers are taken";
}

}  // namespace
}  // namespace sluice
