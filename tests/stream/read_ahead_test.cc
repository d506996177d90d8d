// How many pieces are read ahead, step by step and through a runner; when a consumer lets others
// copy.
#include "session/shard/read_ahead.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "session/shard/shard_runner.h"
#include "session/stream/consumer_share.h"
#include "stream/scripted_source.h"

namespace sluice {
namespace {

using stream_test::ScriptedSource;
using testing::SizeIs;

constexpr int64_t kAll = ReadAhead::kAll;

// Answers at once that it takes until few are read ahead.
int64_t AnswersToFew(ReadAhead* ahead) {
  int64_t answers = 0;
  for (; ahead->limit() == kAll && answers < 1'000'000; ++answers) ahead->Answered(true);
  return answers;
}

TEST(ReadAheadTest, TheFirstAnswerSettlesHowItBegins) {
  ReadAhead ahead(4, 64);
  EXPECT_EQ(ahead.limit(), kAll);
  ahead.Answered(true);
  EXPECT_EQ(ahead.limit(), 4);

  ReadAhead slow(4, 64);
  slow.Answered(false);
  EXPECT_EQ(slow.limit(), kAll);
  EXPECT_EQ(AnswersToFew(&slow), 64);
}

TEST(ReadAheadTest, OneWaitIsEnoughToReadAllAhead) {
  ReadAhead ahead(4, 64);
  ahead.Answered(true);
  ahead.Answered(false);
  EXPECT_EQ(ahead.limit(), kAll);
  for (int i = 0; i < 63; ++i) ahead.Answered(true);
  ahead.Answered(false);  // they have to be in a row
  EXPECT_EQ(AnswersToFew(&ahead), 64);
}

TEST(ReadAheadTest, WhatWasWrongTakesTwiceAsManyAnswers) {
  ReadAhead ahead(2, 10);
  std::vector<int64_t> answers;
  for (int i = 0; i < 9; ++i) {
    answers.push_back(AnswersToFew(&ahead));
    ahead.Answered(false);
  }
  EXPECT_THAT(answers, testing::ElementsAre(1, 10, 20, 40, 80, 160, 320, 640, 640));
}

TEST(ReadAheadTest, FewAreFewerThanAll) {
  ReadAhead small(4, 4);
  small.Answered(true);
  EXPECT_EQ(small.limit(), kAll);
  ReadAhead never(0, 64);
  never.Answered(true);
  EXPECT_EQ(never.limit(), kAll);
  EXPECT_EQ(ReadAhead::FewOf(int64_t{1} << 20), 4);
  EXPECT_EQ(ReadAhead::FewOf(4096), 1024);
  EXPECT_EQ(ReadAhead::FewOf(int64_t{1} << 30), 2);
}

TEST(ConsumerShareTest, TellsWhatTheConsumerMostlyDoes) {
  ConsumerShare share;
  EXPECT_FALSE(share.computes());
  share.Add(0, 50'000'000);  // for the first item
  share.Add(900'000, 100'000);
  EXPECT_FALSE(share.computes());
  for (int i = 0; i < 30; ++i) share.Add(900'000, 100'000);
  EXPECT_TRUE(share.computes());
  for (int i = 0; i < 30; ++i) share.Add(100'000, 900'000);
  EXPECT_FALSE(share.computes());
}

// Items of one read each, which are drained as soon as they are there.
class ManyReads final : public ShardWork {
 public:
  explicit ManyReads(int64_t items) : items_(items) {}
  void AddMessages(const ShardPiece&, std::byte*, uint64_t, std::vector<TransportOp>*) override {}
  void Arrived(const ShardPiece&) override {}
  bool MayDrain(const ShardPiece&) override { return true; }
  absl::Status Drain(const ShardPiece&, std::byte*, CopyQueue*) override {
    return absl::OkStatus();
  }
  absl::Status Done(const ShardPiece&, const std::byte*) override { return absl::OkStatus(); }
  bool NextPiece(ShardPiece* piece) override {
    if (over()) return false;
    *piece = ShardPiece();
    piece->id = BucketId({.window = static_cast<uint64_t>(next_)});
    piece->stages = kStageFill | kStageDrain;
    piece->read = {.offset = next_, .bytes = 1, .item = next_};
    piece->bytes = 1;
    piece->index = next_++;
    return true;
  }
  bool over() const override { return next_ == items_; }

 private:
  const int64_t items_;
  int64_t next_ = 0;
};

class RunnerReadAheadTest : public testing::Test {
 protected:
  void SetUp() override {
    ShardRunnerOptions options;
    options.slots = 8;
    options.few_slots = 3;
    options.window = ShardRunner::WindowOf(options.slots);
    options.object_names = {"a.bin"};
    auto staging = ShardRunner::AllocateStaging(device_.get(), options).value();
    auto runner =
        ShardRunner::Make(&work_, device_.get(), &source_, nullptr, std::move(staging), options)
            .value();
    runner_ = std::move(runner);
    Poll();
  }
  // Goes on until nothing moves.
  void Poll() {
    absl::StatusOr<bool> moved = true;
    while (moved.ok() && *moved) moved = runner_->Poll();
    EXPECT_TRUE(moved.ok()) << moved.status();
  }
  void Answer(bool at_once) {
    source_.at_once = at_once;
    source_.Answer(source_.open.front().cookie);
    Poll();
  }

  int64_t Unfinished() const {
    return runner_->counters().submitted - runner_->counters().finished;
  }
  // What was submitted goes on. So it takes as many answers as there are such, until few are left.
  int64_t AnswersToFew() {
    int64_t answers = 0;
    for (; source_.open.size() > 3; ++answers) Answer(true);
    return answers;
  }

  static constexpr int64_t kItems = 500;
  ScriptedSource source_;
  const std::unique_ptr<Device> device_ = MakeHostDevice();
  ManyReads work_{kItems};
  std::unique_ptr<ShardRunner> runner_;
};

TEST_F(RunnerReadAheadTest, ReadsLittleAheadWhileStorageAnswersAtOnce) {
  EXPECT_THAT(source_.open, SizeIs(8));
  const int64_t unfinished = Unfinished();
  EXPECT_EQ(AnswersToFew(), unfinished - 3);
  // Every other one is read aside, and tells nothing.
  int aside = 0;
  for (int i = 0; i < 10; ++i) {
    const bool is_aside = source_.open.front().aside;
    aside += is_aside ? 1 : 0;
    Answer(!is_aside);
  }
  EXPECT_EQ(aside, 5);
  EXPECT_THAT(source_.open, SizeIs(3));
  while (source_.open.front().aside) Answer(false);
  // The rest waits for nobody.
  Answer(false);
  EXPECT_THAT(source_.open, SizeIs(8));
  while (!source_.open.empty()) Answer(true);
  EXPECT_TRUE(runner_->done());
  EXPECT_THAT(source_.started, SizeIs(kItems));
}

TEST_F(RunnerReadAheadTest, WhoeverReadsAsideReadsAllAhead) {
  AnswersToFew();
  runner_->ReadAside(true);
  Poll();
  EXPECT_THAT(source_.open, SizeIs(8));
  for (int i = 0; i < 3; ++i) Answer(true);
  // These tell nothing: somebody else has copied them.
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(source_.open.front().aside);
    Answer(false);
  }
  runner_->ReadAside(false);
  // So no further piece is submitted.
  const int64_t unfinished = Unfinished();
  EXPECT_EQ(AnswersToFew(), unfinished - 3);
}

}  // namespace
}  // namespace sluice
