// Copies in batches, and buckets on their way to their end, on a device that ends what it is told.
#include "session/base/copy_queue.h"

#include <array>
#include <cstddef>
#include <vector>

#include "fakes/log_device.h"
#include "gmock/gmock.h"
#include "session/base/ending_line.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// ---- Copies in batches, on a device that ends them when it is told to.

class CopyQueueTest : public testing::Test {
 protected:
  // Batches with the device from which on stages find no room.
  static constexpr int kFull =
      Device::kMaxOutstanding - CopyQueue::kMarksMax - 1 - Device::kMaxOutstanding / 8;

  explicit CopyQueueTest(size_t batch_items = 2)
      : device_({.batch_items = batch_items}, &log_, "slot"), copies_(&device_) {
    log_.Name(a_.data(), a_.size(), "a");
    log_.Name(b_.data(), b_.size(), "b");
  }

  // Four bytes from place `at` of a to the same of b.
  void AddCopy(size_t at) {
    ASSERT_TRUE(copies_.AddFlat({a_.data() + at}, {b_.data() + at}, 4).ok());
  }
  void AddSum() {
    Reduction sum;
    sum.dtype = DType::kU8;
    sum.src = a_.data();
    sum.dst = b_.data();
    sum.elements = 8;
    ASSERT_TRUE(copies_.Add(sum).ok());
  }
  // A batch of its own.
  void StartCopy(uint64_t cookie) {
    copies_.Begin(cookie, &pending_);
    AddCopy(0);
    ASSERT_TRUE(copies_.Flush().ok());
  }
  std::vector<uint64_t> Poll() {
    std::array<uint64_t, Device::kMaxOutstanding> cookies{};
    const absl::StatusOr<int> count = copies_.Poll(absl::MakeSpan(cookies));
    EXPECT_TRUE(count.ok()) << count.status();
    return {cookies.begin(), cookies.begin() + count.value_or(0)};
  }
  bool HasRoom() { return copies_.HasRoom().value(); }

  std::array<std::byte, 64> a_{};
  std::array<std::byte, 64> b_{};
  OperationsLog log_;
  LogDevice device_;
  CopyQueue copies_;
  int pending_ = 0;
};

TEST_F(CopyQueueTest, ABatchIsAsLongAsTheDeviceWants) {
  copies_.Begin(7, &pending_, BatchStage::kFill);
  for (const size_t at : {0, 4, 8}) AddCopy(at);
  EXPECT_THAT(log_.Take(), ElementsAre("pack 1: a[0,4) -> b[0,4); a[4,8) -> b[4,8)"));
  EXPECT_EQ(pending_, 1);
  ASSERT_TRUE(copies_.Flush().ok());
  ASSERT_TRUE(copies_.Flush().ok());  // of nothing: no batch
  EXPECT_THAT(log_.Take(), ElementsAre("pack 2: a[8,12) -> b[8,12)"));
  EXPECT_EQ(pending_, 2);
  EXPECT_EQ(copies_.outstanding(), 2);
  EXPECT_THAT(Poll(), IsEmpty());
  device_.End("pack 2");
  EXPECT_THAT(Poll(), ElementsAre(7));
  device_.End("pack 1");
  EXPECT_THAT(Poll(), ElementsAre(7));
  EXPECT_EQ(copies_.outstanding(), 0);
}

TEST_F(CopyQueueTest, ACopyAfterAReductionIsInALaterBatch) {
  copies_.Begin(1, &pending_, BatchStage::kDrain);
  AddCopy(0);
  AddSum();
  AddSum();
  EXPECT_THAT(log_.Take(), IsEmpty());
  AddCopy(4);
  EXPECT_THAT(log_.Take(),
              ElementsAre("unpack 1: a[0,4) -> b[0,4); a[0,8) to b[0,8); a[0,8) to b[0,8)"));
  ASSERT_TRUE(copies_.Flush().ok());
  EXPECT_THAT(log_.Take(), ElementsAre("unpack 2: a[4,8) -> b[4,8)"));
}

TEST_F(CopyQueueTest, WhoFindsNoRoomIsCalledWhenThereIsSome) {
  for (uint64_t i = 0; i < kFull - 1; ++i) StartCopy(i);
  EXPECT_TRUE(HasRoom());
  StartCopy(kFull - 1);
  EXPECT_FALSE(HasRoom());
  for (const uint64_t cookie : {1000, 1001}) {
    copies_.Begin(cookie, &pending_);
    copies_.AwaitRoom();
  }
  EXPECT_EQ(pending_, kFull + 2);
  EXPECT_EQ(copies_.outstanding(), kFull + 2);
  EXPECT_THAT(Poll(), IsEmpty());
  device_.End("copy 3");
  EXPECT_THAT(Poll(), ElementsAre(2, 1000, 1001));
  EXPECT_EQ(copies_.outstanding(), kFull - 1);
  EXPECT_TRUE(HasRoom());
}

TEST_F(CopyQueueTest, TheQuestionForRoomLooksAtTheDevice) {
  for (uint64_t i = 0; i < kFull; ++i) StartCopy(i);
  EXPECT_FALSE(HasRoom());
  device_.End("copy 1");
  EXPECT_TRUE(HasRoom());
  EXPECT_EQ(copies_.outstanding(), kFull);  // until Poll has told of it
  EXPECT_THAT(Poll(), ElementsAre(0));
  EXPECT_EQ(copies_.outstanding(), kFull - 1);
}

TEST_F(CopyQueueTest, MarksHaveCookiesAndOrdersHaveNumbers) {
  const auto fence = device_.MakeFence().value();
  ASSERT_TRUE(copies_.Mark(5).ok());
  const absl::StatusOr<int64_t> after = copies_.Order(fence.get(), nullptr);
  const absl::StatusOr<int64_t> then = copies_.Order(nullptr, fence.get());
  ASSERT_TRUE(copies_.Finish().ok());
  EXPECT_THAT(log_.Take(),
              ElementsAre("mark 1", "order 1: after fence 1", "order 2: then fence 1", "mark 2"));
  ASSERT_TRUE(after.ok() && then.ok());
  device_.End("order 1");
  EXPECT_THAT(Poll(), IsEmpty());
  EXPECT_TRUE(copies_.HasEnded(*after));
  EXPECT_FALSE(copies_.HasEnded(*then));
  device_.End("mark 1");
  device_.End("order 2");
  EXPECT_THAT(Poll(), ElementsAre(5));
  EXPECT_TRUE(copies_.HasEnded(*then));
  EXPECT_EQ(copies_.outstanding(), 1);
  device_.End("mark 2");
  EXPECT_THAT(Poll(), IsEmpty());
  EXPECT_EQ(copies_.outstanding(), 0);
  EXPECT_EQ(pending_, 0);
}

TEST_F(CopyQueueTest, WhatTheDeviceRefusesIsNotPending) {
  copies_.Begin(1, &pending_);
  AddCopy(0);
  device_.RefuseNext(absl::InternalError("broken"));
  EXPECT_EQ(copies_.Flush(), absl::InternalError("broken"));
  EXPECT_EQ(pending_, 0);
  EXPECT_EQ(copies_.outstanding(), 0);
}

// ---- Buckets on their way to their end, in stream order.

class EndingLineTest : public testing::Test {
 protected:
  EndingLineTest() : device_({}, &log_, "slot"), copies_(&device_) { line_.Reserve(64); }

  OperationsLog log_;
  LogDevice device_;
  CopyQueue copies_;
  EndingLine line_;
};

TEST_F(EndingLineTest, SoManyMarksAreUnderWayAndNoMore) {
  for (size_t slot = 0; slot <= CopyQueue::kMarksMax; ++slot) {
    line_.Add(slot);
    ASSERT_TRUE(line_.Mark(&copies_).ok());
  }
  EXPECT_EQ(line_.marks(), CopyQueue::kMarksMax);
  EXPECT_FALSE(line_.all_marked());
  line_.DropFirst();
  ASSERT_TRUE(line_.Mark(&copies_).ok());
  EXPECT_TRUE(line_.all_marked());
}

}  // namespace
}  // namespace sluice
