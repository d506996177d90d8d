// The first item begins alone: step by step on a clock of the test's, and through a runner.
#include "session/shard/head_start.h"

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "session/shard/shard_runner.h"
#include "stream/scripted_source.h"

namespace sluice {
namespace {

using stream_test::ScriptedSource;
using testing::ElementsAre;

constexpr int64_t kNever = INT64_MAX;

TEST(HeadStartTest, OthersBeginWhenTheFirstItemIsThere) {
  HeadStart head_start(100);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_EQ(head_start.end_ns(), kNever);
  EXPECT_FALSE(head_start.MayBegin(1, 1001));
  EXPECT_TRUE(head_start.holds());
  EXPECT_EQ(head_start.end_ns(), 1100);
  head_start.Ended(0);
  EXPECT_FALSE(head_start.MayBegin(1, 1002));
  head_start.Ended(0);
  EXPECT_FALSE(head_start.holds());
  EXPECT_EQ(head_start.end_ns(), kNever);
  EXPECT_TRUE(head_start.MayBegin(1, 1003));
  EXPECT_TRUE(head_start.MayBegin(2, 1003));
}

TEST(HeadStartTest, OthersBeginWhenTheFirstItemTakesLong) {
  HeadStart head_start(100);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_FALSE(head_start.MayBegin(1, 1099));
  EXPECT_TRUE(head_start.MayBegin(1, 1100));
  EXPECT_FALSE(head_start.holds());
  EXPECT_EQ(head_start.end_ns(), kNever);
  EXPECT_TRUE(head_start.MayBegin(2, 1100));
  head_start.Ended(0);
  EXPECT_TRUE(head_start.MayBegin(3, 1100));
}

TEST(HeadStartTest, AnItemThatIsThereBeforeOthersAreAskedForHoldsNobodyBack) {
  HeadStart head_start(100);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  head_start.Ended(0);
  EXPECT_TRUE(head_start.MayBegin(1, 1000));
  EXPECT_FALSE(head_start.holds());
}

TEST(HeadStartTest, WithoutATimeThereIsNone) {
  HeadStart head_start(0);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_TRUE(head_start.MayBegin(1, 1000));
  EXPECT_EQ(head_start.end_ns(), kNever);
}

TEST(HeadStartTest, MessagesOfOthersWaitForTheFirstItem) {
  HeadStart head_start(100, 500);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_TRUE(head_start.MayBegin(1, 1100));
  EXPECT_TRUE(head_start.MaySend(0, 2000));
  EXPECT_FALSE(head_start.MaySend(1, 2100));
  EXPECT_EQ(head_start.end_ns(), 2600);
  EXPECT_FALSE(head_start.holds());
  EXPECT_FALSE(head_start.MaySend(2, 2599));
  head_start.Ended(0);
  EXPECT_TRUE(head_start.MaySend(1, 2599));
  EXPECT_EQ(head_start.end_ns(), kNever);
  EXPECT_TRUE(head_start.MaySend(2, 2600));
}

TEST(HeadStartTest, MessagesOfOthersWaitNoLongerThanTheLimit) {
  HeadStart head_start(100, 500);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_FALSE(head_start.MaySend(7, 2000));
  EXPECT_TRUE(head_start.MaySend(7, 2500));
  EXPECT_EQ(head_start.end_ns(), kNever);
  EXPECT_TRUE(head_start.MaySend(1, 2500));
}

TEST(HeadStartTest, MessagesWaitForNobodyWithoutALimit) {
  HeadStart head_start(100);
  EXPECT_TRUE(head_start.MayBegin(0, 1000));
  EXPECT_TRUE(head_start.MaySend(1, 1000));
}

// Items of two pieces, each piece a read of its own, which goes nowhere. All but the first item
// share a channel.
class TwoPieceItems final : public stream_test::DrainedWork {
 public:
  explicit TwoPieceItems(int64_t items) : pieces_(2 * items) {}

  StageSet stages = kStageFill | kStageDrain;
  std::vector<int64_t> sent;  // which pieces, in the order in which they might send messages
  int64_t failing_fill = -1;  // a piece
  std::function<void()> before_next;  // called whenever the runner asks for pieces, if it is set

  bool NextPiece(ShardPiece* piece) override {
    if (before_next) before_next();
    if (over()) return false;
    *piece = ShardPiece();
    piece->id = BucketId(
        {.window = static_cast<uint64_t>(next_ / 2), .phase = static_cast<uint64_t>(next_ % 2)});
    piece->channel = next_ < 2 ? 0 : 1;
    piece->stages = stages;
    piece->read = {.offset = next_, .bytes = 1, .item = next_ / 2};
    piece->bytes = 1;
    piece->index = next_ / 2;
    piece->part = next_++ % 2;
    return true;
  }
  bool over() const override { return next_ == pieces_; }
  absl::Status Fill(const ShardPiece& piece, std::byte*, CopyQueue*) override {
    return 2 * piece.index + piece.part == failing_fill ? absl::DataLossError("no such bytes")
                                                        : absl::OkStatus();
  }
  void AddMessages(const ShardPiece& piece, std::byte*, uint64_t,
                   std::vector<TransportOp>*) override {
    sent.push_back(2 * piece.index + piece.part);
  }

 private:
  const int64_t pieces_;
  int64_t next_ = 0;
};

class RunnerHeadStartTest : public testing::Test {
 protected:
  void Make(int64_t head_start_ns, int64_t first_sends_ns = 0) {
    ShardRunnerOptions options;
    options.slots = 8;
    options.window = ShardRunner::WindowOf(options.slots);
    options.channels = 2;
    options.object_names = {"a.bin"};
    options.head_start_ns = head_start_ns;
    options.first_sends_ns = first_sends_ns;
    auto staging = ShardRunner::AllocateStaging(device_.get(), options).value();
    absl::StatusOr<std::unique_ptr<ShardRunner>> runner =
        ShardRunner::Make(&work_, device_.get(), &source_, nullptr, std::move(staging), options);
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
  }
  // Begins all reads, in this order; only the first item is sent on before it is there.
  std::vector<ReadOp> ReadsToSendOn(int64_t first_sends_ns = kHourNs) {
    work_.stages = kStageFill | kStageMove | kStageDrain;
    Make(0, first_sends_ns);
    Poll();
    return source_.started;
  }
  // Goes on until nothing moves.
  void Poll() {
    absl::StatusOr<bool> moved = true;
    while (moved.ok() && *moved) moved = runner_->Poll();
    EXPECT_TRUE(moved.ok()) << moved.status();
  }
  // Which bytes were asked for, in the order of asking.
  std::vector<int64_t> Asked() const {
    std::vector<int64_t> asked;
    for (const ReadOp& op : source_.started) asked.push_back(op.offset);
    return asked;
  }
  void AnswerAll() {
    while (!source_.open.empty()) source_.Answer(source_.open.back().cookie);
  }

  static constexpr int64_t kHourNs = 3'600'000'000'000;
  ScriptedSource source_;
  const std::unique_ptr<Device> device_ = MakeHostDevice();
  TwoPieceItems work_{3};
  std::unique_ptr<ShardRunner> runner_;
};

TEST_F(RunnerHeadStartTest, NothingElseIsReadBeforeTheFirstItemIsThere) {
  Make(kHourNs);
  const int64_t before_ns = MonotonicNs();
  Poll();
  EXPECT_THAT(Asked(), ElementsAre(0, 1));
  EXPECT_GE(runner_->next_due_ns(), before_ns);
  EXPECT_LE(runner_->next_due_ns(), MonotonicNs() + kHourNs);
  source_.Answer(source_.open.front().cookie);
  Poll();
  EXPECT_THAT(Asked(), ElementsAre(0, 1));
  AnswerAll();
  // Who drives it can hand out the first item before anything else begins.
  ASSERT_TRUE(*runner_->Poll());
  EXPECT_THAT(Asked(), ElementsAre(0, 1));
  Poll();
  EXPECT_THAT(Asked(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_FALSE(runner_->done());
  AnswerAll();
  Poll();
  EXPECT_TRUE(runner_->done());
}

TEST_F(RunnerHeadStartTest, NothingElseIsSentBeforeTheFirstItemIsThere) {
  const std::vector<ReadOp> reads = ReadsToSendOn();
  ASSERT_EQ(reads.size(), 6);
  for (const int place : {5, 2, 3, 4, 0}) source_.Answer(reads[static_cast<size_t>(place)].cookie);
  Poll();
  EXPECT_THAT(work_.sent, ElementsAre(0));
  EXPECT_LE(runner_->next_due_ns(), MonotonicNs() + kHourNs);
  AnswerAll();
  Poll();
  EXPECT_THAT(work_.sent, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_TRUE(runner_->done());
}

// The time for the first item passes while the runner is between two looks at the clock.
TEST_F(RunnerHeadStartTest, WhatWaitedIsSentBeforeWhatComesAfterTheLimit) {
  const std::vector<ReadOp> reads = ReadsToSendOn(1'000'000'000);
  ASSERT_EQ(reads.size(), 6);
  source_.Answer(reads[2].cookie);
  Poll();
  ASSERT_THAT(work_.sent, ElementsAre());
  const int64_t limit_ns = runner_->next_due_ns();
  work_.before_next = [limit_ns] {
    while (MonotonicNs() <= limit_ns) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  for (const int place : {5, 3, 4}) source_.Answer(reads[static_cast<size_t>(place)].cookie);
  Poll();
  EXPECT_THAT(work_.sent, ElementsAre(2, 3, 4, 5));
  AnswerAll();
  Poll();
  EXPECT_THAT(work_.sent, ElementsAre(2, 3, 4, 5, 0, 1));
  EXPECT_TRUE(runner_->done());
}

TEST_F(RunnerHeadStartTest, ABucketThatFailsTakesAlongWhatEndsWithIt) {
  Make(0);
  Poll();
  work_.failing_fill = 3;
  AnswerAll();
  EXPECT_TRUE(absl::IsDataLoss(runner_->Poll().status()));
  EXPECT_EQ(runner_->counters().held_buckets, 0);
  EXPECT_TRUE(runner_->Settle(true));
}

TEST_F(RunnerHeadStartTest, WhatWaitsToBeSentFailsWithTheStream) {
  const std::vector<ReadOp> reads = ReadsToSendOn();
  ASSERT_EQ(reads.size(), 6);
  source_.Answer(reads[2].cookie);
  Poll();
  runner_->Poison(absl::CancelledError("enough"));
  AnswerAll();
  EXPECT_TRUE(runner_->Settle(true));
  EXPECT_THAT(work_.sent, ElementsAre());
}

TEST_F(RunnerHeadStartTest, WithoutOneAllIsReadAtOnce) {
  Make(0);
  Poll();
  EXPECT_THAT(Asked(), ElementsAre(0, 1, 2, 3, 4, 5));
  AnswerAll();
  Poll();
  EXPECT_TRUE(runner_->done());
}

}  // namespace
}  // namespace sluice
