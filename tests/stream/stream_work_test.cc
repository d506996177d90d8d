// The pieces of a stream's items: who reads them, who gets them, and where they go.
#include "session/stream/stream_work.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "gmock/gmock.h"
#include "session/base/copy_queue.h"
#include "session/stream/catalog_items.h"
#include "session/stream/stream_items.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr StageSet kAll = kStageFill | kStageMove | kStageDrain;

class OneObject final : public StreamItems {
 public:
  int64_t items() const override { return 3; }
  StreamItem At(int64_t item) const override { return {0, 100 * item, 100}; }
  DType DTypeOf(int64_t) const override { return DType::kU8; }
  std::vector<int64_t> ShapeOf(int64_t) const override { return {100}; }
  absl::Status EachShape(
      const std::function<absl::Status(absl::Span<const int64_t>)>& see) const override {
    return see({100});
  }
  int64_t item_bytes_max() const override { return 100; }
  bool uniform() const override { return true; }
  bool aligned_to(int64_t) const override { return true; }
  std::vector<std::string> object_names() const override { return {"object"}; }
  uint64_t fingerprint() const override { return 1; }
};

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
    work.lends = lends_;
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

  bool lends_ = false;
  const OneObject items_{};
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

// ---- What is made.

// The pieces of `items` generated items in batches of `batch`, which two ranks share.
std::vector<ShardPiece> MadePieces(const GeneratedItems& items, int64_t epochs, int64_t batch,
                                   bool in_order, int rank) {
  StreamPlanOptions options;
  options.items = items.items();
  options.epochs = epochs;
  options.places = {{0, 1, items.items()}, {0, 1, items.items()}};
  StreamPlan plan(options, rank);
  StreamWorkOptions work;
  work.piece_bytes = items.item_bytes_max();
  work.window = 64;
  work.batch_items = batch;
  work.in_order = in_order;
  StreamWork made(&plan, rank, &items, nullptr, work);
  std::vector<ShardPiece> pieces;
  for (ShardPiece piece; made.NextPiece(&piece);) pieces.push_back(piece);
  return pieces;
}

TEST(MadeItemsTest, RanksTakeTurnsAtMakingThem) {
  const GeneratedItems items(7, 64, absl::nullopt);
  const std::vector<ShardPiece> first = MadePieces(items, 2, 1, true, 0);
  const std::vector<ShardPiece> second = MadePieces(items, 2, 1, true, 1);
  ASSERT_THAT(first, SizeIs(14));
  ASSERT_THAT(second, SizeIs(14));
  int made = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].id, second[i].id);
    EXPECT_NE(first[i].stages & kStageFill, second[i].stages & kStageFill) << i;
    made += (first[i].stages & kStageFill) != 0 ? 1 : 0;
  }
  EXPECT_EQ(made, 7);
}

TEST(MadeItemsTest, ReadsSayWhichBatchTheyAreFor) {
  const GeneratedItems items(5, 64, absl::nullopt);
  const auto batches = [&](int64_t batch, bool in_order) {
    std::vector<int64_t> numbers;
    for (const ShardPiece& piece : MadePieces(items, 2, batch, in_order, 0)) {
      numbers.push_back(piece.read.batch);
    }
    return numbers;
  };
  EXPECT_THAT(batches(1, true), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(batches(2, true), ElementsAre(0, 0, 1, 1, 2, 3, 3, 4, 4, 5));
  EXPECT_THAT(batches(5, true), ElementsAre(0, 0, 0, 0, 0, 1, 1, 1, 1, 1));
  EXPECT_THAT(batches(2, false), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4));
}

// ---- What a source may lend.

class Lender final : public LentMemory {
 public:
  absl::Status Check(int64_t) const override { return absl::OkStatus(); }
};

class LendingWorkTest : public StreamWorkTest {
 protected:
  LendingWorkTest() {
    lends_ = true;
    for (size_t i = 0; i < file_.size(); ++i) file_[i] = static_cast<std::byte>(i);
  }
  // A piece's way from its arrival on, with what the source has lent or read.
  void Bring(const ShardPiece& piece, bool lent) {
    work_->Arrived(piece);
    ASSERT_TRUE(work_->MayDrain(piece));
    std::byte* const data = file_.data() + piece.read.offset;
    if (lent) {
      EXPECT_TRUE(work_->KeepLent(piece, data, std::make_shared<Lender>()));
    } else {
      const std::unique_ptr<Device> device = MakeHostDevice();
      CopyQueue copies(device.get());
      int pending = 0;
      copies.Begin(1, &pending);
      EXPECT_TRUE(work_->Drain(piece, data, &copies).ok());
      EXPECT_TRUE(copies.Flush().ok());
    }
    EXPECT_TRUE(work_->Done(piece, data).ok());
  }
  void ExpectItem(const Lease& lease) {
    const auto* const found = static_cast<const std::byte*>(lease.view().data);
    const std::byte* const wanted = file_.data() + 100 * lease.item();
    EXPECT_TRUE(std::equal(wanted, wanted + 100, found));
  }

  std::array<std::byte, 300> file_;
};

TEST_F(LendingWorkTest, ItemsOfOneRankAloneMayBeLent) {
  Open(0);
  EXPECT_FALSE(Next().read.may_lend);
  Open(0, true, false);
  EXPECT_TRUE(Next().read.may_lend);
  lends_ = false;
  Open(0, true, false);
  EXPECT_FALSE(Next().read.may_lend);
}

TEST_F(LendingWorkTest, AnItemWhoseElementsLieOddlyIsCopied) {
  const GeneratedItems odd(3, 12, DType::kF64);
  StreamPlanOptions options;
  options.items = 3;
  options.places = {{0, 1, 3}};
  StreamPlan plan(options, 0);
  StreamWorkOptions work;
  work.lends = true;
  work.piece_bytes = 12;
  work.window = 8;
  Open(0);
  StreamWork lends(&plan, 0, &odd, cells_.get(), work);
  for (const bool may_lend : {true, false, true}) {
    ShardPiece piece;
    ASSERT_TRUE(lends.NextPiece(&piece));
    EXPECT_EQ(piece.read.may_lend, may_lend) << piece.read.offset;
  }
}

TEST_F(LendingWorkTest, PiecesInOneMappingAreOneItem) {
  Open(0, true, false);
  const ShardPiece first = Next();
  const ShardPiece second = Next();
  Bring(second, true);
  Bring(first, true);
  const Lease lease = Delivery::Take(delivery_);
  EXPECT_EQ(lease.view().data, file_.data());
  EXPECT_EQ(work_->bytes_copied(), 0);
}

// The source could not lend one of its pieces: then all of it goes to its device buffer.
TEST_F(LendingWorkTest, AnItemThatIsLentInPartIsCopied) {
  for (const bool first_is_lent : {true, false}) {
    Open(0, true, false);
    buffers_.fill(std::byte{0xEE});
    const ShardPiece first = Next();
    const ShardPiece second = Next();
    Bring(first, first_is_lent);
    Bring(second, !first_is_lent);
    const Lease lease = Delivery::Take(delivery_);
    EXPECT_EQ(lease.view().data, buffers_.data());
    ExpectItem(lease);
    EXPECT_GE(work_->bytes_copied(), 100);
  }
}

// The same for a batch of which an item could not be lent.
TEST_F(LendingWorkTest, ABatchThatIsLentInPartIsCopied) {
  StreamPlanOptions options;
  options.items = 3;
  options.places = {{0, 1, 3}};
  plan_ = std::make_unique<StreamPlan>(options, 0);
  DeliveryMemory memory;
  std::array<std::byte, 320> batch;
  memory.data = batch.data();
  memory.stride = 320;
  delivery_ = std::make_shared<Delivery>(std::move(memory), 1, 3);
  cells_ = std::make_unique<DeviceCells>(delivery_.get(), 3, 100, true);
  StreamWorkOptions work;
  work.lends = true;
  work.batch_items = 3;
  work.piece_bytes = 100;
  work.window = 8;
  work_ = std::make_unique<StreamWork>(plan_.get(), 0, &items_, cells_.get(), work);
  for (int item = 0; item < 3; ++item) {
    const ShardPiece piece = Next();
    EXPECT_TRUE(piece.read.may_lend);
    Bring(piece, item != 1);
  }
  const Lease lease = Delivery::Take(delivery_);
  ASSERT_TRUE(lease.is_batch());
  EXPECT_EQ(lease.batch().data, batch.data());
  EXPECT_TRUE(std::equal(file_.begin(), file_.end(), batch.begin()));
  EXPECT_EQ(work_->bytes_copied(), 300);
}

}  // namespace
}  // namespace sluice
