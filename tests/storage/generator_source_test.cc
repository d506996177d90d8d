// Items from a callback: in order, as far ahead as is allowed, and what becomes of its failures.
#include "storage/generator_source.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "storage/sized_item.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr int64_t kItemBytes = 5000;

absl::StatusOr<int64_t> Fill(int64_t item, absl::Span<std::byte> into) {
  const std::string content =
      SourceContent(static_cast<uint64_t>(item), static_cast<int64_t>(into.size()));
  std::transform(content.begin(), content.end(), into.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return static_cast<int64_t>(into.size());
}

std::unique_ptr<GeneratorSource> Make(GenerateItem generate, GeneratorOptions options = {}) {
  options.item_bytes = kItemBytes;
  return MakeGeneratorSource(std::move(generate), options).value();
}

std::vector<ReadOp> Items(SourceRun* run, int64_t begin, int64_t end) {
  std::vector<ReadOp> ops;
  for (int64_t i = begin; i < end; ++i) ops.push_back(run->Op(0, i * kItemBytes, kItemBytes));
  return ops;
}

// The same, each in a batch of its own.
std::vector<ReadOp> Batches(SourceRun* run, int64_t begin, int64_t end) {
  std::vector<ReadOp> ops = Items(run, begin, end);
  for (size_t i = 0; i < ops.size(); ++i) ops[i].batch = static_cast<int64_t>(i);
  return ops;
}

void ExpectItem(const SourceRun& run, const ReadOp& op) {
  run.ExpectBytes(op.cookie,
                  SourceContent(static_cast<uint64_t>(op.offset / kItemBytes), op.bytes));
}

TEST(GeneratorTest, MakesItemsInOrder) {
  std::vector<int64_t> made;  // by the generator's thread
  const auto source = Make([&](int64_t item, absl::Span<std::byte> into) {
    made.push_back(item);
    return Fill(item, into);
  });
  SourceRun run(source.get());
  const auto ops = Items(&run, 5, 45);
  if (!run.Finish(ops)) return;
  for (const ReadOp& op : ops) ExpectItem(run, op);
  run.ExpectGuards();
  ASSERT_EQ(made.size(), 40u);
  for (size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i], static_cast<int64_t>(i) + 5);
  EXPECT_EQ(source->counters().requests, 40);
  EXPECT_EQ(source->counters().bytes_read, 40 * kItemBytes);
  EXPECT_EQ(source->counters().opens, 1);
}

TEST(GeneratorTest, RunsAheadOfPoll) {
  std::promise<void> third;
  const auto source = Make([&](int64_t item, absl::Span<std::byte> into) {
    if (item == 2) third.set_value();
    return Fill(item, into);
  });
  SourceRun run(source.get());
  ASSERT_TRUE(run.Start(Items(&run, 0, 3)).ok());
  third.get_future().wait();  // nobody polls
  EXPECT_TRUE(run.UntilAllEnded());
}

TEST(GeneratorTest, BeginsWhatIsAllowedAndNothingBeyond) {
  constexpr int64_t kItems = 20;
  for (const int threads : {1, 3, 8}) {
    std::atomic<int64_t> allowed = 1;
    std::atomic<int> too_early = 0;
    const auto source = Make(
        [&](int64_t item, absl::Span<std::byte> into) {
          if (item >= allowed) ++too_early;
          return Fill(item, into);
        },
        {.threads = threads});
    SourceRun run(source.get());
    const auto ops = Batches(&run, 0, kItems);
    ASSERT_TRUE(run.Start(ops).ok());
    for (const int64_t batches : {int64_t{1}, int64_t{4}, int64_t{5}, kItems}) {
      allowed = batches;
      std::thread([&] { source->Allow(batches, 0); }).join();
      if (!run.UntilEnded(kItems - batches)) return;
      EXPECT_EQ(run.outstanding(), kItems - batches);
    }
    for (const ReadOp& op : ops) ExpectItem(run, op);
    EXPECT_EQ(too_early, 0) << threads;
  }
}

TEST(GeneratorTest, TellsHowOldTheUpdatesWere) {
  const auto source = Make(Fill);
  SourceRun run(source.get());
  const auto ops = Batches(&run, 0, 5);
  ASSERT_TRUE(run.Start(ops).ok());
  EXPECT_TRUE(run.UntilEnded(4));
  EXPECT_EQ(source->staleness_max(), 0);
  source->Allow(2, 1);
  EXPECT_TRUE(run.UntilEnded(3));
  EXPECT_EQ(source->staleness_max(), 0);
  source->Allow(4, 1);
  EXPECT_TRUE(run.UntilEnded(1));
  EXPECT_EQ(source->staleness_max(), 2);
  source->Allow(5, 4);
  EXPECT_TRUE(run.UntilAllEnded());
  EXPECT_EQ(source->staleness_max(), 2);
}

// As one that is tried again.
TEST(GeneratorTest, AnEarlierBatchIsNotHeldUpByALaterOne) {
  const auto source = Make(Fill);
  SourceRun run(source.get());
  auto ops = Batches(&run, 0, 3);
  ASSERT_TRUE(run.Start(absl::MakeConstSpan(ops).subspan(1)).ok());
  ASSERT_TRUE(run.Start(absl::MakeConstSpan(ops).first(1)).ok());
  EXPECT_TRUE(run.UntilEnded(2));
  ExpectItem(run, ops[0]);
  source->Allow(3, 0);
  EXPECT_TRUE(run.UntilAllEnded());
}

TEST(GeneratorTest, ThreadsCallItAtOnce) {
  constexpr int kThreads = 8;
  std::latch all(kThreads);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  const auto source = Make(
      [&](int64_t item, absl::Span<std::byte> into) {
        {
          const std::lock_guard lock(mutex);
          ids.insert(std::this_thread::get_id());
        }
        all.arrive_and_wait();  // none ends before all have begun
        return Fill(item, into);
      },
      {.threads = kThreads});
  SourceRun run(source.get());
  const auto ops = Items(&run, 0, kThreads);
  if (!run.Finish(ops)) return;
  for (const ReadOp& op : ops) ExpectItem(run, op);
  run.ExpectGuards();
  EXPECT_EQ(ids.size(), size_t{kThreads});
}

TEST(GeneratorTest, ItemsOfVaryingSizeComeWithTheirLengths) {
  constexpr int64_t kStored = StoredBytes(kItemBytes);
  const auto source = Make(
      [](int64_t item, absl::Span<std::byte> into) {
        return Fill(item, into.first(static_cast<size_t>(item == 3 ? kItemBytes : 100 * item)));
      },
      {.sized = true});
  SourceRun run(source.get());
  std::vector<ReadOp> ops;
  for (int64_t i = 0; i < 4; ++i) ops.push_back(run.Op(0, i * kStored, kStored));
  if (!run.Finish(ops)) return;
  run.ExpectGuards();
  const int64_t lengths[] = {0, 100, 200, kItemBytes};
  for (size_t i = 0; i < 4; ++i) {
    const absl::string_view bytes = run.Bytes(ops[i].cookie);
    EXPECT_EQ(StoredLength(reinterpret_cast<const std::byte*>(bytes.data()), kStored), lengths[i]);
    EXPECT_EQ(bytes.substr(0, static_cast<size_t>(lengths[i])), SourceContent(i, lengths[i]));
  }
  EXPECT_EQ(source->counters().bytes_read, 300 + kItemBytes);
}

TEST(GeneratorTest, LengthsThatCannotBeAreErrors) {
  const auto source = Make(
      [](int64_t item, absl::Span<std::byte>) -> absl::StatusOr<int64_t> {
        return item == 0 ? kItemBytes + 1 : item == 1 ? -1 : item == 2 ? 6 : 8;
      },
      {.sized = true, .element_bytes = 4});
  SourceRun run(source.get());
  std::vector<ReadOp> ops;
  for (int64_t i = 0; i < 4; ++i) {
    ops.push_back(run.Op(0, i * StoredBytes(kItemBytes), StoredBytes(kItemBytes)));
  }
  if (!run.Finish(ops)) return;
  const auto message = [&](size_t i) { return std::string(run.Outcome(ops[i].cookie).message()); };
  EXPECT_EQ(message(0), "making item 0: the generator returned 5001 bytes, of at most 5000");
  EXPECT_EQ(message(1), "making item 1: the generator returned -1 bytes, of at most 5000");
  EXPECT_THAT(message(2), HasSubstr("6 bytes, which are not whole elements of 4"));
  EXPECT_TRUE(run.Outcome(ops[3].cookie).ok());
}

// However long a callback takes, a look at the source finds that its bytes still come.
TEST(GeneratorTest, WhatIsBeingMadeIsNeverLate) {
  std::promise<void> begun;
  std::promise<void> go_on;
  const auto source = Make([&](int64_t item, absl::Span<std::byte> into) {
    begun.set_value();
    go_on.get_future().wait();
    return Fill(item, into);
  });
  SourceRun run(source.get());
  ReadProgress progress;
  auto ops = Items(&run, 0, 1);
  ops[0].progress = &progress;
  ASSERT_TRUE(run.Start(ops).ok());
  EXPECT_EQ(progress.begun_ns, ReadProgress::kNotBegun);
  begun.get_future().wait();
  EXPECT_EQ(run.Poll(1), 0);
  const ReadProgress first = progress;
  EXPECT_NE(first.begun_ns, ReadProgress::kNotBegun);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(run.Poll(1), 0);
  EXPECT_EQ(progress.begun_ns, first.begun_ns);
  EXPECT_GT(progress.moved_ns, first.moved_ns);
  go_on.set_value();
  EXPECT_TRUE(run.UntilAllEnded());
}

TEST(GeneratorTest, SaysWhatACallbackThrewAndGoesOn) {
  const auto source = Make([](int64_t item, absl::Span<std::byte> into) {
    if (item == 1) throw std::runtime_error("no such board");
    if (item == 2) throw 42;
    if (item == 3) return absl::StatusOr<int64_t>(absl::FailedPreconditionError("not now"));
    return Fill(item, into);
  });
  SourceRun run(source.get());
  const auto ops = Items(&run, 0, 5);
  if (!run.Finish(ops)) return;
  const auto message = [&](size_t i) { return std::string(run.Outcome(ops[i].cookie).message()); };
  ExpectItem(run, ops[0]);
  EXPECT_TRUE(absl::IsInternal(run.Outcome(ops[1].cookie)));
  EXPECT_THAT(message(1), HasSubstr("item 1"));
  EXPECT_THAT(message(1), HasSubstr("no such board"));
  EXPECT_TRUE(absl::IsInternal(run.Outcome(ops[2].cookie)));
  EXPECT_THAT(message(2), HasSubstr("item 2"));
  EXPECT_TRUE(absl::IsFailedPrecondition(run.Outcome(ops[3].cookie)));
  EXPECT_THAT(message(3), HasSubstr("item 3"));
  ExpectItem(run, ops[4]);
}

TEST(GeneratorTest, CancelsWhatHasNotBegun) {
  std::promise<void> begun;
  std::promise<void> go_on;
  std::vector<int64_t> made;
  const auto source = Make([&](int64_t item, absl::Span<std::byte> into) {
    made.push_back(item);
    if (item == 0) {
      begun.set_value();
      go_on.get_future().wait();
    }
    return Fill(item, into);
  });
  SourceRun run(source.get());
  const auto ops = Items(&run, 0, 4);
  ASSERT_TRUE(run.Start(ops).ok());
  begun.get_future().wait();
  source->Cancel(ops[0].cookie);  // too late
  source->Cancel(ops[2].cookie);
  source->Cancel(12345);
  EXPECT_TRUE(run.UntilEnded(3));
  EXPECT_TRUE(absl::IsCancelled(run.Outcome(ops[2].cookie)));
  go_on.set_value();
  if (!run.UntilAllEnded()) return;
  for (const size_t i : {0u, 1u, 3u}) ExpectItem(run, ops[i]);
  EXPECT_EQ(made, (std::vector<int64_t>{0, 1, 3}));
}

TEST(GeneratorTest, EndsAfterTheCallbackUnderWay) {
  std::promise<void> begun;
  std::promise<void> go_on;
  std::atomic<int> made = 0;
  auto source = Make([&](int64_t item, absl::Span<std::byte> into) {
    begun.set_value();
    go_on.get_future().wait();
    auto length = Fill(item, into);
    ++made;
    return length;
  });
  SourceRun run(source.get());
  ASSERT_TRUE(run.Start(Items(&run, 0, 3)).ok());
  begun.get_future().wait();
  std::thread releaser([&] { go_on.set_value(); });
  source.reset();
  EXPECT_EQ(made, 1);
  releaser.join();
  run.ExpectGuards();
}

TEST(GeneratorTest, EndsWhileItMayNotBegin) {
  auto source = Make(Fill, {.threads = 3});
  SourceRun run(source.get());
  ASSERT_TRUE(run.Start(Batches(&run, 0, 3)).ok());
  EXPECT_TRUE(run.UntilEnded(2));
  source.reset();
}

TEST(GeneratorTest, RefusesWhatIsNoItem) {
  EXPECT_FALSE(MakeGeneratorSource(Fill, {.item_bytes = 0}).ok());
  EXPECT_FALSE(MakeGeneratorSource(nullptr, {.item_bytes = 1}).ok());
  EXPECT_FALSE(MakeGeneratorSource(Fill, {.item_bytes = 1, .threads = 0}).ok());
  const auto source = Make(Fill);
  SourceRun run(source.get());
  const ReadOp bad[] = {run.Op(1, 0, kItemBytes), run.Op(0, 1, kItemBytes),
                        run.Op(0, kItemBytes, kItemBytes - 1), run.Op(0, 0, 2 * kItemBytes)};
  for (const ReadOp& op : bad) {
    EXPECT_TRUE(absl::IsInvalidArgument(run.Start(absl::MakeConstSpan(&op, 1))));
  }
  const auto good = Items(&run, 3, 4);
  if (!run.Finish(good)) return;
  ExpectItem(run, good[0]);
}

}  // namespace
}  // namespace sluice
