// Buffers between a stream and its consumer, and the places for items in them.
#include "session/stream/delivery.h"

#include <array>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "session/stream/device_cells.h"

namespace sluice {
namespace {

using testing::ElementsAre;

// Passes when a test says so.
class TestFence final : public Fence {
 public:
  absl::Status Record(StreamHandle) override {
    passed = false;
    return refusal;
  }
  absl::Status HoldBack(StreamHandle) override {
    ++held_back;
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Passed() override { return passed; }

  bool passed = true;
  int held_back = 0;
  absl::Status refusal;
};

DeliveredItem Item(int64_t number, std::vector<int64_t> shape = {8}) {
  return {.item = number, .shape = std::move(shape)};
}

class DeliveryTest : public testing::Test {
 protected:
  static constexpr int64_t kStride = 64;

  std::shared_ptr<Delivery> Make(int buffers, int64_t batch_items, bool on_device = false) {
    DeliveryMemory memory;
    memory.data = bytes_.data();
    memory.stride = kStride;
    memory.first_block = 10;
    for (int i = 0; on_device && i < buffers; ++i) {
      memory.ready.push_back(std::make_unique<TestFence>());
      memory.released.push_back(std::make_unique<TestFence>());
      released_.push_back(static_cast<TestFence*>(memory.released.back().get()));
      ready_.push_back(static_cast<TestFence*>(memory.ready.back().get()));
    }
    if (on_device) memory.kind = DeviceKind::kCuda;
    return std::make_shared<Delivery>(std::move(memory), buffers, batch_items);
  }
  // The numbers of what the consumer takes, and gives back at once.
  static std::vector<int64_t> TakeAll(const std::shared_ptr<Delivery>& delivery) {
    std::vector<int64_t> numbers;
    while (delivery->state() == Delivery::State::kReady) {
      const Lease lease = Delivery::Take(delivery);
      for (int64_t i = 0; i < lease.items(); ++i) numbers.push_back(lease.item(i));
    }
    return numbers;
  }

  std::array<std::byte, 256> bytes_{};
  std::vector<TestFence*> released_;
  std::vector<TestFence*> ready_;
};

TEST_F(DeliveryTest, BuffersGoRoundInTheOrderInWhichTheyArePublished) {
  const auto delivery = Make(2, 1);
  EXPECT_EQ(delivery->state(), Delivery::State::kNotReady);
  const int first = delivery->TakeFree();
  const int second = delivery->TakeFree();
  EXPECT_EQ(delivery->TakeFree(), -1);
  EXPECT_FALSE(delivery->waits_for_device());
  EXPECT_EQ(delivery->MemoryOf(second), bytes_.data() + kStride * second);
  delivery->ItemsOf(first) = {Item(1)};
  delivery->ItemsOf(second) = {Item(2)};
  delivery->Publish(second);
  delivery->Publish(first);
  Lease lease = Delivery::Take(delivery);
  EXPECT_EQ(lease.item(), 2);
  EXPECT_EQ(lease.view().data, delivery->MemoryOf(second));
  EXPECT_EQ(delivery->TakeFree(), -1);
  const Lease other = Delivery::Take(delivery);
  EXPECT_EQ(other.item(), 1);
  EXPECT_EQ(delivery->state(), Delivery::State::kAllLeased);
  lease.Release();
  lease.Release();  // once
  EXPECT_TRUE(lease.end());
  EXPECT_EQ(delivery->state(), Delivery::State::kNotReady);
  EXPECT_EQ(delivery->TakeFree(), second);
  EXPECT_THAT(delivery->ItemsOf(second), testing::IsEmpty());
}

TEST_F(DeliveryTest, WhatWasPublishedBeforeAGoodEndCounts) {
  const auto delivery = Make(1, 1);
  delivery->ItemsOf(delivery->TakeFree()) = {Item(1)};
  delivery->Publish(0);
  delivery->End(absl::OkStatus());
  EXPECT_THAT(TakeAll(delivery), ElementsAre(1));
  EXPECT_EQ(delivery->state(), Delivery::State::kEnd);
  EXPECT_TRUE(delivery->status().ok());
}

TEST_F(DeliveryTest, AnErrorComesBeforeWhatWasPublished) {
  const auto delivery = Make(1, 1);
  delivery->ItemsOf(delivery->TakeFree()) = {Item(1)};
  delivery->Publish(0);
  delivery->End(absl::DataLossError("torn"));
  delivery->End(absl::OkStatus());  // the first end counts
  EXPECT_EQ(delivery->state(), Delivery::State::kEnd);
  EXPECT_EQ(delivery->status(), absl::DataLossError("torn"));
}

TEST_F(DeliveryTest, AListenerIsToldBeforeABufferIsFreeAndAfter) {
  struct Log final : Delivery::Listener {
    void Releasing(int buffer, absl::Span<const DeliveredItem> items) override {
      EXPECT_EQ(delivery->TakeFree(), -1);
      EXPECT_EQ(buffer, 0);
      numbers.push_back(items[0].item);
    }
    void Released() override { EXPECT_EQ(delivery->TakeFree(), 0); }
    Delivery* delivery = nullptr;
    std::vector<int64_t> numbers;
  } log;
  const auto delivery = Make(1, 1);
  log.delivery = delivery.get();
  delivery->set_listener(&log);
  delivery->ItemsOf(delivery->TakeFree()) = {Item(7)};
  delivery->Publish(0);
  EXPECT_THAT(TakeAll(delivery), ElementsAre(7));
  EXPECT_THAT(log.numbers, ElementsAre(7));
}

TEST_F(DeliveryTest, ABufferIsFreeOnceItsStreamHasPassed) {
  const auto delivery = Make(1, 1, true);
  delivery->ItemsOf(delivery->TakeFree()) = {Item(1)};
  delivery->Publish(0);
  Lease lease = Delivery::Take(delivery);
  EXPECT_EQ(lease.view().device, DeviceKind::kCuda);
  EXPECT_TRUE(lease.Await(StreamHandle()).ok());
  EXPECT_EQ(ready_[0]->held_back, 1);
  released_[0]->refusal = absl::InternalError("captured");
  EXPECT_EQ(lease.Release(StreamHandle()), absl::InternalError("captured"));
  EXPECT_FALSE(lease.end());
  released_[0]->refusal = absl::OkStatus();
  EXPECT_TRUE(lease.Release(StreamHandle()).ok());
  EXPECT_TRUE(lease.end());
  EXPECT_EQ(delivery->TakeFree(), -1);
  EXPECT_TRUE(delivery->waits_for_device());
  released_[0]->passed = true;
  EXPECT_EQ(delivery->TakeFree(), 0);
  EXPECT_FALSE(delivery->waits_for_device());
}

TEST_F(DeliveryTest, HostMemoryHasNoStreams) {
  const auto delivery = Make(1, 1);
  delivery->ItemsOf(delivery->TakeFree()) = {Item(1)};
  delivery->Publish(0);
  Lease lease = Delivery::Take(delivery);
  EXPECT_TRUE(absl::IsFailedPrecondition(lease.Await(StreamHandle())));
  EXPECT_TRUE(absl::IsFailedPrecondition(lease.Release(StreamHandle())));
  EXPECT_FALSE(lease.end());
}

TEST_F(DeliveryTest, EqualItemsOneBehindTheOtherAreABatch) {
  const auto delivery = Make(1, 2);
  DeviceCells cells(delivery.get(), 2, 8, true);
  Cell cell;
  for (const int64_t number : {4, 5}) {
    ASSERT_TRUE(cells.Grant(Item(number, {2, 4}), &cell));
    cells.Fill(cell);
  }
  const Lease lease = Delivery::Take(delivery);
  ASSERT_TRUE(lease.is_batch());
  EXPECT_THAT(lease.batch().shape, ElementsAre(2, 2, 4));
  EXPECT_EQ(lease.view(1).data, delivery->MemoryOf(0) + 8);
}

TEST_F(DeliveryTest, ItemsOfSeveralShapesOrWithGapsAreNone) {
  const auto delivery = Make(2, 2);
  DeviceCells cells(delivery.get(), 2, 8, true);
  Cell cell;
  // Of two shapes, and then each shorter than its cell.
  for (const auto& shape : {std::vector<int64_t>{8}, {4, 2}, {4}, {4}}) {
    ASSERT_TRUE(cells.Grant(Item(0, shape), &cell));
    cells.Fill(cell);
  }
  EXPECT_FALSE(Delivery::Take(delivery).is_batch());
  EXPECT_FALSE(Delivery::Take(delivery).is_batch());
}

TEST_F(DeliveryTest, CellsAreGrantedInOrderAndPublishedWhenFull) {
  const auto delivery = Make(2, 2);
  DeviceCells cells(delivery.get(), 2, 16, true);
  std::array<Cell, 4> granted;
  for (size_t i = 0; i < granted.size(); ++i) {
    ASSERT_TRUE(cells.Grant(Item(static_cast<int64_t>(i)), &granted[i]));
  }
  Cell none;
  EXPECT_FALSE(cells.Grant(Item(9), &none));
  EXPECT_EQ(none.buffer, -1);
  EXPECT_EQ(cells.MemoryOf(granted[3]), bytes_.data() + kStride * granted[3].buffer + 16);
  cells.Fill(granted[2]);
  cells.Fill(granted[3]);
  EXPECT_EQ(delivery->state(), Delivery::State::kNotReady) << "the first buffer comes first";
  cells.Fill(granted[1]);
  EXPECT_EQ(delivery->state(), Delivery::State::kNotReady);
  cells.Fill(granted[0]);
  EXPECT_THAT(TakeAll(delivery), ElementsAre(0, 1, 2, 3));
}

TEST_F(DeliveryTest, OutOfOrderAFullBufferWaitsForNobody) {
  const auto delivery = Make(2, 2);
  DeviceCells cells(delivery.get(), 2, 16, false);
  std::array<Cell, 3> granted;
  for (size_t i = 0; i < granted.size(); ++i) {
    ASSERT_TRUE(cells.Grant(Item(static_cast<int64_t>(i)), &granted[i]));
  }
  cells.Fill(granted[2]);
  EXPECT_EQ(delivery->state(), Delivery::State::kNotReady) << "more may come into it";
  cells.CloseOpen();
  EXPECT_THAT(TakeAll(delivery), ElementsAre(2));
  cells.Fill(granted[1]);
  cells.Fill(granted[0]);
  EXPECT_THAT(TakeAll(delivery), ElementsAre(0, 1));
}

TEST_F(DeliveryTest, ABlockTakesTheBuffersPlace) {
  const auto delivery = Make(2, 1);
  DeviceCells cells(delivery.get(), 1, kStride, true);
  Cell cell;
  ASSERT_TRUE(cells.Grant(Item(1), &cell));
  std::byte* const memory = bytes_.data() + 3 * kStride;
  EXPECT_EQ(cells.SwapCell(cell, memory, 40, memory + 6), 10 + cell.buffer);
  cells.Fill(cell);
  {
    const Lease lease = Delivery::Take(delivery);
    EXPECT_EQ(lease.view().data, memory + 6);
  }
  EXPECT_EQ(delivery->SwapBuffer(cell.buffer, bytes_.data(), 41), 40);
}

// The consumer's thread sleeps, and takes every item once and in order.
TEST_F(DeliveryTest, ASleeperIsWokenForEachBufferAndTheEnd) {
  constexpr int64_t kItems = 2000;
  const auto delivery = Make(2, 1);
  std::vector<int64_t> taken;
  std::thread consumer([&] {
    while (delivery->state() != Delivery::State::kEnd) {
      const std::vector<int64_t> numbers = TakeAll(delivery);
      taken.insert(taken.end(), numbers.begin(), numbers.end());
      delivery->Sleep();
    }
  });
  for (int64_t i = 0; i < kItems;) {
    const int buffer = delivery->TakeFree();
    if (buffer < 0) {
      std::this_thread::yield();
      continue;
    }
    delivery->ItemsOf(buffer) = {Item(i++)};
    delivery->Publish(buffer);
  }
  delivery->End(absl::OkStatus());
  consumer.join();
  ASSERT_EQ(taken.size(), static_cast<size_t>(kItems));
  for (int64_t i = 0; i < kItems; ++i) ASSERT_EQ(taken[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace sluice
