// The order between a caller's stream and the session's, on fences that a test passes.
#include "session/transfer/run_stream.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fakes/log_device.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RunStreamTest : public testing::Test {
 protected:
  RunStreamTest() : device_({}, &log_, "slot"), copies_(&device_) {}

  void Begin(const RunStream::Ways& ways, size_t windows = 1) {
    stream_.Reset(StreamHandle());
    stream_.Begin(&device_, ways, windows);
  }
  // The device has come to the order.
  void End(const std::string& order) {
    ASSERT_TRUE(device_.End(order));
    std::array<uint64_t, 4> cookies{};
    EXPECT_EQ(*copies_.Poll(absl::MakeSpan(cookies)), 0);
  }
  bool AwaitMarks() { return Value(stream_.AwaitMarks(&copies_)); }
  static bool Value(const absl::StatusOr<bool>& value) {
    EXPECT_TRUE(value.ok()) << value.status();
    return value.value_or(false);
  }

  OperationsLog log_;
  LogDevice device_;
  CopyQueue copies_;
  RunStream stream_;
};

TEST_F(RunStreamTest, ARunInNoStreamWaitsForNothing) {
  stream_.Reset(absl::nullopt);
  EXPECT_FALSE(stream_.is_there());
  EXPECT_TRUE(stream_.Mark(0, true).ok());
  stream_.Open(0);
  EXPECT_FALSE(stream_.waits());
  EXPECT_FALSE(AwaitMarks());
  EXPECT_TRUE(Value(stream_.End(&copies_)));
  EXPECT_THAT(log_.Take(), IsEmpty());
}

TEST_F(RunStreamTest, WhatTheDeviceOrdersTheHostDoesNotWaitFor) {
  Begin({.done_in_order = true});
  ASSERT_TRUE(stream_.Mark(0, true).ok());
  EXPECT_FALSE(stream_.waits());
  stream_.Open(0);
  EXPECT_TRUE(stream_.waits());
  EXPECT_TRUE(AwaitMarks());
  EXPECT_FALSE(AwaitMarks());
  EXPECT_THAT(log_.Take(), ElementsAre("stream: record fence 1", "order 1: after fence 1"));
  End("order 1");
  EXPECT_TRUE(AwaitMarks());
  EXPECT_FALSE(stream_.waits());
  EXPECT_TRUE(stream_.IsHeldBack());
  device_.Pass("fence 1");
  EXPECT_FALSE(stream_.IsHeldBack());
}

TEST_F(RunStreamTest, TheHostWaitsForWhatItTouchesItself) {
  for (const bool on_device : {true, false}) {
    SCOPED_TRACE(on_device);
    Begin({.done_in_order = true, .network_is_behind = !on_device});
    ASSERT_TRUE(stream_.Mark(0, on_device).ok());
    stream_.Open(0);
    EXPECT_TRUE(AwaitMarks());
    End(on_device ? "order 1" : "order 2");
    EXPECT_FALSE(AwaitMarks());
    EXPECT_TRUE(stream_.waits());
    device_.Pass("fence 1");
    EXPECT_TRUE(AwaitMarks());
    EXPECT_FALSE(stream_.waits());
    EXPECT_FALSE(stream_.IsHeldBack());
  }
}

// A window that is opened later does not overtake an earlier one, whose mark comes first.
TEST_F(RunStreamTest, WindowsFollowOneAnother) {
  Begin({.network_is_behind = false}, 2);
  ASSERT_TRUE(stream_.Mark(0, true).ok());
  ASSERT_TRUE(stream_.Mark(1, true).ok());
  ASSERT_TRUE(stream_.Mark(1, true).ok());  // more memory: the same fence
  stream_.Open(0);
  stream_.Open(1);
  EXPECT_TRUE(AwaitMarks());
  EXPECT_THAT(log_.Take(), ElementsAre("stream: record fence 1", "stream: record fence 2",
                                       "stream: record fence 2", "order 1: after fence 1",
                                       "order 2: after fence 2"));
  End("order 1");
  End("order 2");
  device_.Pass("fence 2");
  EXPECT_FALSE(AwaitMarks());
  EXPECT_TRUE(stream_.waits());
  device_.Pass("fence 1");
  EXPECT_TRUE(AwaitMarks());
  EXPECT_FALSE(stream_.waits());
}

TEST_F(RunStreamTest, TheCallersStreamComesAfterAMarkOnce) {
  Begin({.done_in_order = true});
  ASSERT_TRUE(stream_.CanBeginMark());
  EXPECT_TRUE(Value(stream_.BeginMark(&copies_)));
  EXPECT_FALSE(stream_.CanBeginMark()) << "one is under way";
  EXPECT_FALSE(stream_.TakeMark(copies_));
  End("order 1");
  EXPECT_TRUE(stream_.TakeMark(copies_));
  EXPECT_FALSE(stream_.TakeMark(copies_));
  EXPECT_EQ(stream_.last_mark(), 1u);
  ASSERT_TRUE(stream_.HoldBack(1).ok());
  ASSERT_TRUE(stream_.HoldBack(1).ok());
  EXPECT_THAT(log_.Take(), ElementsAre("order 1: then fence 1", "stream: wait for fence 1"));
}

TEST_F(RunStreamTest, SoManyMarksAreNotHeldBackBehindAndNoMore) {
  Begin({.done_in_order = true});
  for (uint64_t mark = 1; mark <= RunStream::kMarks; ++mark) {
    ASSERT_TRUE(stream_.CanBeginMark());
    ASSERT_TRUE(Value(stream_.BeginMark(&copies_)));
    End(absl::StrCat("order ", mark));
    ASSERT_TRUE(stream_.TakeMark(copies_));
  }
  EXPECT_FALSE(stream_.CanBeginMark());
  ASSERT_TRUE(stream_.HoldBack(2).ok());  // behind the first, too
  EXPECT_TRUE(stream_.CanBeginMark());
  log_.Take();
  ASSERT_TRUE(stream_.HoldBack(1).ok());
  EXPECT_THAT(log_.Take(), IsEmpty());
}

TEST_F(RunStreamTest, TheEndIsAMarkOfItsOwn) {
  Begin({.done_in_order = true});
  EXPECT_FALSE(Value(stream_.End(&copies_)));
  EXPECT_FALSE(Value(stream_.End(&copies_)));
  End("order 1");
  EXPECT_TRUE(Value(stream_.End(&copies_)));
  EXPECT_THAT(log_.Take(), ElementsAre("order 1: then fence 1", "stream: wait for fence 1"));
  // Where a bucket counts once it has ended, there is nothing left to order.
  Begin({});
  EXPECT_TRUE(Value(stream_.End(&copies_)));
  EXPECT_THAT(log_.Take(), IsEmpty());
}

TEST_F(RunStreamTest, MarksThatWerePassedServeAgain) {
  std::vector<std::unique_ptr<Fence>> marks;
  for (int run = 0; run < 2; ++run) {
    Begin({.done_in_order = true});
    ASSERT_TRUE(stream_.Mark(0, true).ok());
    stream_.Open(0);
    AwaitMarks();
    End(absl::StrCat("order ", run + 1));
    AwaitMarks();
    stream_.HandOver(&marks);
    EXPECT_EQ(marks.size(), static_cast<size_t>(run) + 1);
  }
  EXPECT_FALSE(stream_.IsHeldBack());
  device_.Pass("fence 1");
  stream_.HandOver(&marks);
  EXPECT_EQ(marks.size(), 1u);
  log_.Take();
  Begin({.done_in_order = true});
  ASSERT_TRUE(stream_.Mark(0, true).ok());
  EXPECT_THAT(log_.Take(), ElementsAre("stream: record fence 1"));
}

}  // namespace
}  // namespace sluice
