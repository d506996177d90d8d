// Retries, hedges and final errors of reads, step by step on a clock of the test's.
#include "session/shard/read_desk.h"

#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "gmock/gmock.h"
#include "storage/asked_pause.h"
#include "stream/scripted_source.h"

namespace sluice {
namespace {

using stream_test::ScriptedSource;
using testing::ElementsAre;
using testing::SizeIs;

constexpr int64_t kMs = 1'000'000;

class ReadDeskTest : public testing::Test {
 protected:
  static constexpr int kKept = 2;

  void Make(int slots, int spares, const HedgeOptions& hedge = {}, const RetryOptions& retry = {}) {
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(
        kReadAlignment, size_t{4096} * static_cast<size_t>(slots + spares + kKept))));
    desk_.emplace(&source_, std::vector<std::string>{"a.bin", "b.bin"}, slots, spares, kKept,
                  memory_.get(), 4096, hedge, retry);
  }
  void Order(int slot) {
    desk_->Order({.slot = slot, .object = 1, .offset = 100, .bytes = 50, .item = 7}, now_ns_);
    ASSERT_TRUE(desk_->Flush().ok());
  }
  std::vector<ReadDone> Poll() {
    std::vector<ReadDone> done(8);
    const absl::StatusOr<int> count = desk_->Poll(absl::MakeSpan(done), now_ns_);
    EXPECT_TRUE(count.ok()) << count.status();
    done.resize(static_cast<size_t>(count.value_or(0)));
    return done;
  }
  ReadDone PollOne() {
    const std::vector<ReadDone> done = Poll();
    return done.size() == 1 ? done[0] : throw std::length_error("one answer was to come");
  }
  // Polled often enough that nobody can say that nobody polled.
  void PassTime(int64_t ms) {
    for (const int64_t end_ns = now_ns_ + ms * kMs; now_ns_ < end_ns;) {
      now_ns_ = std::min(end_ns, now_ns_ + 100 * kMs);
      EXPECT_THAT(Poll(), SizeIs(0));
    }
  }
  static std::vector<uint64_t> Slots(const std::vector<ReadOp>& ops) {
    std::vector<uint64_t> slots;
    for (const ReadOp& op : ops) slots.push_back(op.cookie);
    return slots;
  }
  // Reads that take 10 ms each, so that the desk knows what to expect.
  void Learn(int reads) {
    for (int i = 0; i < reads; ++i) {
      Order(0);
      now_ns_ += 10 * kMs;
      source_.Answer(source_.open.back().cookie);
      ASSERT_THAT(Poll(), SizeIs(1));
    }
    source_.started.clear();
  }

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  ScriptedSource source_;
  std::unique_ptr<std::byte, Free> memory_;
  std::optional<ReadDesk> desk_;
  int64_t now_ns_ = 1;
};

TEST_F(ReadDeskTest, AnAnswerEndsAnOrder) {
  Make(2, 0);
  Order(1);
  ASSERT_THAT(source_.started, SizeIs(1));
  EXPECT_EQ(source_.started[0].offset, 100);
  EXPECT_EQ(source_.started[0].attempt, 0);
  EXPECT_THAT(Poll(), SizeIs(0));
  source_.Answer(source_.started[0].cookie, absl::OkStatus(), 3);
  const ReadDone done = PollOne();
  EXPECT_TRUE(done.status.ok());
  EXPECT_EQ(done.slot, 1);
  EXPECT_EQ(done.data, source_.started[0].data + 3);
  EXPECT_EQ(desk_->outstanding(), 0);
}

TEST_F(ReadDeskTest, TransientFailuresAreTriedAgainLaterAndLater) {
  Make(1, 0, {}, {.attempts_max = 3, .backoff = absl::Milliseconds(10)});
  Order(0);
  source_.Answer(0, absl::UnavailableError("reset"));
  EXPECT_THAT(Poll(), SizeIs(0));
  EXPECT_THAT(source_.open, SizeIs(0));
  EXPECT_EQ(desk_->next_due_ns(), now_ns_ + 10 * kMs);
  now_ns_ += 10 * kMs;
  EXPECT_THAT(Poll(), SizeIs(0));
  ASSERT_THAT(source_.open, SizeIs(1));
  EXPECT_EQ(source_.open[0].attempt, 1);
  source_.Answer(0, absl::UnavailableError("reset"));
  EXPECT_THAT(Poll(), SizeIs(0));
  EXPECT_EQ(desk_->next_due_ns(), now_ns_ + 20 * kMs);
  now_ns_ += 20 * kMs;
  EXPECT_THAT(Poll(), SizeIs(0));
  source_.Answer(0);
  const ReadDone done = PollOne();
  EXPECT_TRUE(done.status.ok());
  EXPECT_EQ(desk_->counters().retries, 2);
}

TEST_F(ReadDeskTest, AServerIsAskedAgainWhenItWishes) {
  Make(1, 0, {}, {.attempts_max = 1, .request_timeout = absl::Seconds(5)});
  Order(0);
  const absl::Status asked = WithAskedPause(absl::UnavailableError("busy"), absl::Seconds(2));
  for (int i = 0; i < 2; ++i) {
    source_.Answer(0, asked);
    EXPECT_THAT(Poll(), SizeIs(0));
    EXPECT_EQ(desk_->next_due_ns(), now_ns_ + 2000 * kMs);
    now_ns_ += 2000 * kMs;
    EXPECT_THAT(Poll(), SizeIs(0));
    ASSERT_THAT(source_.open, SizeIs(1));
  }
  source_.Answer(0, asked);  // six seconds in all
  const ReadDone done = PollOne();
  EXPECT_EQ(ReadFailureOf(done.status)->attempts, 3);
}

TEST_F(ReadDeskTest, LateRequestsAreCancelledAndTriedAgain) {
  Make(1, 0, {}, {.request_timeout = absl::Seconds(1)});
  Order(0);
  PassTime(999);
  EXPECT_THAT(source_.cancelled, SizeIs(0));
  PassTime(1);
  EXPECT_THAT(source_.cancelled, ElementsAre(0));
  source_.Answer(0, absl::CancelledError("cancelled"));
  Poll();
  now_ns_ = desk_->next_due_ns();
  Poll();
  ASSERT_THAT(source_.open, SizeIs(1));
  source_.Answer(0);
  EXPECT_THAT(Poll(), SizeIs(1));
}

TEST_F(ReadDeskTest, AReadWhoseBytesStillComeIsNotLate) {
  Make(1, 0, {}, {.request_timeout = absl::Seconds(1)});
  Order(0);
  for (int i = 0; i < 100; ++i) {
    PassTime(900);
    source_.open[0].progress->moved_ns = now_ns_;
  }
  EXPECT_THAT(source_.cancelled, SizeIs(0));
  PassTime(999);
  EXPECT_THAT(source_.cancelled, SizeIs(0));
  PassTime(1);
  EXPECT_THAT(source_.cancelled, ElementsAre(0));
}

TEST_F(ReadDeskTest, AReadThatWaitsInTheSourceIsNotLate) {
  const RetryOptions retry = {.request_timeout = absl::Seconds(1)};
  Make(1, 1, {.enabled = true}, retry);
  Learn(40);
  Order(0);
  source_.open[0].TellWaits();
  for (int i = 0; i < 100; ++i) PassTime(900);
  EXPECT_THAT(source_.open, SizeIs(1));  // nor hedged
  EXPECT_THAT(source_.cancelled, SizeIs(0));
  source_.open[0].TellBegun(now_ns_);
  PassTime(14);
  EXPECT_THAT(source_.open, SizeIs(1));
  PassTime(10);
  ASSERT_THAT(source_.open, SizeIs(2));
  source_.open[1].progress->moved_ns = INT64_MAX / 2;
  PassTime(1000);
  EXPECT_THAT(source_.cancelled, ElementsAre(source_.open[0].cookie));
}

// Who does not poll finds late what nobody drove: it has a while to catch up.
TEST_F(ReadDeskTest, NobodyIsLateWhileNobodyPolls) {
  Make(1, 0, {}, {.request_timeout = absl::Seconds(1)});
  Order(0);
  PassTime(10);
  now_ns_ += 30'000 * kMs;
  Poll();
  EXPECT_THAT(source_.cancelled, SizeIs(0));
  EXPECT_LE(desk_->next_due_ns(), now_ns_ + 1000 * kMs);
  // Who sleeps until then sleeps a little longer.
  now_ns_ = desk_->next_due_ns() + 5000 * kMs;
  Poll();
  EXPECT_THAT(source_.cancelled, ElementsAre(0));
}

TEST_F(ReadDeskTest, LateReadsHalveWhatIsUnderWay) {
  RetryOptions retry;
  retry.request_timeout = absl::Seconds(1);
  retry.attempts_max = 100;
  Make(16, 0, {}, retry);
  for (int slot = 0; slot < 16; ++slot) Order(slot);
  // Half of them are with the storage, the others wait in the source.
  for (size_t i = 8; i < 16; ++i) source_.open[i].TellWaits();
  PassTime(1000);
  EXPECT_THAT(source_.cancelled, SizeIs(16));
  while (!source_.open.empty()) {
    source_.Answer(source_.open[0].cookie, absl::CancelledError("cancelled"));
  }
  source_.started.clear();
  PassTime(60);
  // Four at once. What was not late need not wait for its next try.
  EXPECT_THAT(Slots(source_.open), ElementsAre(8, 9, 10, 11));
  int answers = 0;
  size_t most = 0;
  for (int i = 0; i < 200 && answers < 16; ++i) {
    most = std::max(most, source_.open.size());
    if (!source_.open.empty()) source_.Answer(source_.open[0].cookie);
    now_ns_ += kMs;
    for (const ReadDone& done : Poll()) {
      EXPECT_TRUE(done.status.ok());
      ++answers;
    }
  }
  EXPECT_EQ(answers, 16);
  // What did not get to the storage was no attempt, and answers raise the limit.
  for (const ReadOp& op : source_.started) EXPECT_EQ(op.attempt, op.cookie < 8 ? 1 : 0);
  EXPECT_EQ(desk_->counters().retries, 8);
  EXPECT_THAT(most, testing::AllOf(testing::Gt(4u), testing::Lt(9u)));
}

// A generator makes no later item before this one was taken.
TEST_F(ReadDeskTest, WhatWaitsInTheSourceHoldsUpNoOlderOrder) {
  Make(2, 0, {}, {.request_timeout = absl::Seconds(1)});
  Order(0);
  Order(1);
  source_.open[1].TellWaits();
  PassTime(1000);
  ASSERT_THAT(source_.cancelled, ElementsAre(0, 1));  // the pace is one at a time
  source_.Answer(0, absl::CancelledError("cancelled"));
  source_.Answer(1, absl::CancelledError("cancelled"));
  PassTime(1);
  ASSERT_THAT(Slots(source_.open), ElementsAre(1));
  source_.open[0].TellWaits();
  PassTime(60);
  EXPECT_THAT(Slots(source_.open), ElementsAre(1, 0));
}

TEST_F(ReadDeskTest, AHedgeThatAnswersFirstWins) {
  Make(2, 1, {.enabled = true});
  Learn(40);
  Order(1);
  now_ns_ += 10 * kMs;
  Poll();
  EXPECT_THAT(source_.open, SizeIs(1));  // not late yet
  now_ns_ += 10 * kMs;
  Poll();
  ASSERT_THAT(source_.open, SizeIs(2));
  const ReadOp first = source_.open[0];
  const ReadOp second = source_.open[1];
  EXPECT_NE(first.data, second.data);
  EXPECT_EQ(second.offset, first.offset);
  EXPECT_EQ(second.attempt, 1);
  EXPECT_EQ(desk_->spares_used(), 1);
  source_.Answer(second.cookie);
  const ReadDone done = PollOne();
  EXPECT_EQ(done.data, second.data);
  EXPECT_EQ(desk_->BlockOf(1), second.data);
  EXPECT_THAT(source_.cancelled, ElementsAre(first.cookie));
  // The loser stays charged until it ends.
  EXPECT_EQ(desk_->spares_used(), 1);
  source_.Answer(first.cookie, absl::CancelledError("lost"));
  EXPECT_THAT(Poll(), SizeIs(0));
  EXPECT_EQ(desk_->spares_used(), 0);
  EXPECT_EQ(desk_->counters().hedges, 1);
  EXPECT_EQ(desk_->counters().hedges_won, 1);
}

TEST_F(ReadDeskTest, HedgesKeepWithinTheirShare) {
  Make(8, 8, {.enabled = true, .extra_share_max = 0.1});
  Learn(20);
  for (int slot = 0; slot < 8; ++slot) Order(slot);
  now_ns_ += 20 * kMs;
  Poll();
  // 28 requests allow 2.8 of these; one may be ahead.
  EXPECT_EQ(desk_->counters().hedges, 3);
}

TEST_F(ReadDeskTest, CancellingEndsWhatWaitsToBeTriedAgain) {
  Make(2, 0);
  Order(0);
  Order(1);
  source_.Answer(0, absl::UnavailableError("reset"));
  Poll();
  desk_->CancelAll();
  EXPECT_THAT(source_.cancelled, ElementsAre(1));
  source_.Answer(1, absl::CancelledError("cancelled"));
  EXPECT_THAT(Poll(), SizeIs(1));
  now_ns_ += 1000 * kMs;
  EXPECT_THAT(Poll(), SizeIs(0));
  EXPECT_EQ(desk_->outstanding(), 0);
  EXPECT_EQ(desk_->next_due_ns(), INT64_MAX);
}

// Nobody waits for what was never started.
TEST_F(ReadDeskTest, AReadThatTheSourceRefusesIsNotOutstanding) {
  Make(3, 0);
  Order(0);
  source_.refusal = absl::ResourceExhaustedError("no descriptors");
  for (const int slot : {1, 2}) {
    desk_->Order({.slot = slot, .object = 1, .offset = 100, .bytes = 50, .item = 7}, now_ns_);
  }
  EXPECT_EQ(desk_->Flush(), source_.refusal);
  EXPECT_EQ(desk_->outstanding(), 1);
  desk_->CancelAll();
  EXPECT_THAT(source_.cancelled, ElementsAre(0));
  source_.Answer(0, absl::CancelledError("cancelled"));
  EXPECT_THAT(Poll(), SizeIs(1));
  EXPECT_EQ(desk_->outstanding(), 0);
}

// Whatever storage does, each order has one answer, from memory that no other read writes into.
TEST_F(ReadDeskTest, RandomAnswersNeverShareMemory) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&random](uint64_t n) { return static_cast<int64_t>(random() % n); };
    const HedgeOptions hedge = {.enabled = true, .extra_share_max = 0.5};
    const RetryOptions retry = {.attempts_max = 3, .request_timeout = absl::Milliseconds(200)};
    source_.open.clear();
    const int slots = static_cast<int>(1 + below(6));
    const int spares = static_cast<int>(1 + below(3));
    Make(slots, spares, hedge, retry);
    std::vector<bool> ordered(static_cast<size_t>(slots), false);
    int kept = slots + spares;  // the first block of the test's own
    int ends = 0;
    for (int step = 0; step < 2000; ++step) {
      now_ns_ += below(5) * kMs;
      const int slot = static_cast<int>(below(static_cast<uint64_t>(slots)));
      if (!ordered[static_cast<size_t>(slot)]) {
        for (const ReadOp& op : source_.open) ASSERT_NE(op.data, desk_->BlockOf(slot)) << seed;
        Order(slot);
        ordered[static_cast<size_t>(slot)] = true;
      }
      if (!source_.open.empty() && below(2) == 0) {
        const ReadOp op = source_.open[static_cast<size_t>(below(source_.open.size()))];
        const int64_t fate = below(10);
        source_.Answer(op.cookie, fate == 0   ? absl::UnavailableError("reset")
                                  : fate == 1 ? absl::DataLossError("short")
                                              : absl::OkStatus());
      }
      for (size_t i = 0; i < source_.open.size(); ++i) {
        ASSERT_NE(source_.open[i].data, memory_.get() + ptrdiff_t{kept} * 4096);
        for (size_t j = 0; j < i; ++j) ASSERT_NE(source_.open[i].data, source_.open[j].data);
      }
      for (const ReadDone& done : Poll()) {
        ASSERT_TRUE(ordered[static_cast<size_t>(done.slot)]);
        ordered[static_cast<size_t>(done.slot)] = false;
        ++ends;
        if (!done.status.ok() || below(2) == 0) continue;
        const int block = desk_->BlockNumberOf(done.slot);
        desk_->SwapBlock(done.slot, std::exchange(kept, block));
      }
    }
    EXPECT_GT(ends, 100) << seed;
  }
}

}  // namespace
}  // namespace sluice
