// Items from a callback: in order, ahead, after updates if asked, and what becomes of its failures.
#include "storage/generator_source.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr int64_t kItemBytes = 5000;

absl::Status Fill(int64_t item, absl::Span<std::byte> into) {
  const std::string content =
      SourceContent(static_cast<uint64_t>(item), static_cast<int64_t>(into.size()));
  std::transform(content.begin(), content.end(), into.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return absl::OkStatus();
}

std::unique_ptr<GeneratorSource> Make(GenerateItem generate, bool after_update = false) {
  auto source = MakeGeneratorSource(std::move(generate),
                                    {.item_bytes = kItemBytes, .after_update = after_update});
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? *std::move(source) : nullptr;
}

std::vector<ReadOp> Items(SourceRun* run, int64_t begin, int64_t end) {
  std::vector<ReadOp> ops;
  for (int64_t i = begin; i < end; ++i) ops.push_back(run->Op(0, i * kItemBytes, kItemBytes));
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
  ASSERT_TRUE(run.Start(ops).ok());
  if (!run.UntilAllEnded()) return;
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

TEST(GeneratorTest, WaitsForUpdatesIfAsked) {
  constexpr int64_t kItems = 20;
  std::atomic<int64_t> updated = 6;
  std::atomic<int> too_early = 0;
  const auto source = Make(
      [&](int64_t item, absl::Span<std::byte> into) {
        if (updated < item - 1) ++too_early;
        return Fill(item, into);
      },
      /*after_update=*/true);
  SourceRun run(source.get());
  const auto ops = Items(&run, 7, 7 + kItems);  // as after a resume: the first needs no update
  ASSERT_TRUE(run.Start(ops).ok());
  for (int64_t i = 0; i < kItems; ++i) {
    if (!run.UntilEnded(kItems - 1 - i)) return;
    EXPECT_EQ(run.outstanding(), kItems - 1 - i) << "one ahead of its update";
    ExpectItem(run, ops[static_cast<size_t>(i)]);
    updated = 7 + i;
    std::thread([&] { source->UpdateEnded(7 + i); }).join();
  }
  EXPECT_EQ(too_early, 0);
}

TEST(GeneratorTest, AFailedItemNeedsNoUpdate) {
  const auto source = Make(
      [](int64_t item, absl::Span<std::byte> into) {
        return item == 1 ? absl::UnavailableError("busy") : Fill(item, into);
      },
      /*after_update=*/true);
  SourceRun run(source.get());
  const auto ops = Items(&run, 0, 3);
  ASSERT_TRUE(run.Start(ops).ok());
  source->UpdateEnded(0);
  if (!run.UntilAllEnded()) return;
  EXPECT_TRUE(absl::IsUnavailable(run.Outcome(ops[1].cookie)));
  ExpectItem(run, ops[2]);
}

TEST(GeneratorTest, SaysWhatACallbackThrewAndGoesOn) {
  const auto source = Make([](int64_t item, absl::Span<std::byte> into) {
    if (item == 1) throw std::runtime_error("no such board");
    if (item == 2) throw 42;
    if (item == 3) return absl::FailedPreconditionError("not now");
    return Fill(item, into);
  });
  SourceRun run(source.get());
  const auto ops = Items(&run, 0, 5);
  ASSERT_TRUE(run.Start(ops).ok());
  if (!run.UntilAllEnded()) return;
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
    const absl::Status status = Fill(item, into);
    ++made;
    return status;
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

TEST(GeneratorTest, EndsWhileItWaitsForAnUpdate) {
  auto source = Make(Fill, /*after_update=*/true);
  SourceRun run(source.get());
  ASSERT_TRUE(run.Start(Items(&run, 0, 3)).ok());
  EXPECT_TRUE(run.UntilEnded(2));
  source.reset();
}

TEST(GeneratorTest, RefusesWhatIsNoItem) {
  EXPECT_FALSE(MakeGeneratorSource(Fill, {.item_bytes = 0}).ok());
  EXPECT_FALSE(MakeGeneratorSource(nullptr, {.item_bytes = 1}).ok());
  const auto source = Make(Fill);
  SourceRun run(source.get());
  const ReadOp bad[] = {run.Op(1, 0, kItemBytes), run.Op(0, 1, kItemBytes),
                        run.Op(0, kItemBytes, kItemBytes - 1), run.Op(0, 0, 2 * kItemBytes)};
  for (const ReadOp& op : bad) {
    EXPECT_TRUE(absl::IsInvalidArgument(run.Start(absl::MakeConstSpan(&op, 1))));
  }
  const auto good = Items(&run, 3, 4);
  ASSERT_TRUE(run.Start(good).ok());
  if (!run.UntilAllEnded()) return;
  ExpectItem(run, good[0]);
}

}  // namespace
}  // namespace sluice
