// What every source must do about bad reads, failures, Cancel and its own end.
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "storage/source_contract.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr int64_t kKiB = 1024;

TEST_P(SourceContract, RefusesABatchWithABadRead) {
  if (!MakeOfSizes({8 * kKiB})) return;
  SourceRun run(&source());
  const auto expect_refused = [&](const std::function<void(ReadOp&)>& spoil) {
    ReadOp ops[] = {run.Op(0, 0, 100), run.Op(0, 0, 100), run.Op(0, 0, 100)};
    spoil(ops[1]);
    EXPECT_TRUE(absl::IsInvalidArgument(run.Start(ops)));
  };
  expect_refused([](ReadOp& op) { op.object = 1; });
  expect_refused([](ReadOp& op) { op.object = -1; });
  expect_refused([](ReadOp& op) { op.bytes = 0; });
  expect_refused([](ReadOp& op) { op.bytes = -5; });
  expect_refused([](ReadOp& op) { op.offset = -1; });
  expect_refused([](ReadOp& op) { op.offset = INT64_MAX - 10; });
  expect_refused([](ReadOp& op) { op.data = nullptr; });
  expect_refused([](ReadOp& op) { op.data += 512; });
  // The batches' good reads have not begun either, and the source goes on.
  const uint64_t good = run.Read(0, 10, 100);
  if (!run.UntilAllEnded()) return;
  run.ExpectBytes(good, Range(0, 10, 100));
  EXPECT_EQ(run.Poll(100), 0);
  run.ExpectGuards();
}

TEST_P(SourceContract, SaysWhichObjectIsNotThere) {
  if (!Make({{.name = "here.bin", .content = SourceContent(1, 9000)},
             {.name = "nowhere.bin", .content = std::nullopt}})) {
    return;
  }
  SourceRun run(&source());
  const ReadOp ops[] = {run.Op(1, 0, 100), run.Op(0, 0, 9000), run.Op(1, 4096, 5000)};
  if (!run.Finish(ops)) return;
  for (const int missing : {0, 2}) {
    const absl::Status& outcome = run.Outcome(ops[missing].cookie);
    EXPECT_THAT(outcome, Fails(absl::StatusCode::kNotFound, "nowhere.bin"));
  }
  run.ExpectBytes(ops[1].cookie, Content(0));
  run.ExpectGuards();
}

TEST_P(SourceContract, SaysWhichRangeAnObjectIsTooShortFor) {
  if (!MakeOfSizes({10'000, 8192, 0})) return;
  SourceRun run(&source());
  std::vector<ReadOp> ops;
  for (const int64_t offset : {9999L, 10'000L, 10'001L, 12'288L, 1'000'000'000L}) {
    ops.push_back(run.Op(0, offset, 2));
  }
  ops.push_back(run.Op(0, 0, 10'001));
  ops.push_back(run.Op(0, 0, 100'000));
  ops.push_back(run.Op(1, 8191, 2));
  ops.push_back(run.Op(1, 8192, 1));
  ops.push_back(run.Op(2, 0, 1));
  const uint64_t good = run.Read(0, 9999, 1);
  if (!run.Finish(ops)) return;
  for (const ReadOp& op : ops) {
    const absl::Status& outcome = run.Outcome(op.cookie);
    EXPECT_TRUE(absl::IsDataLoss(outcome)) << outcome;
    const std::string message(outcome.message());
    EXPECT_THAT(message, HasSubstr(std::string(1, static_cast<char>('a' + op.object)) + ".bin"));
    EXPECT_THAT(message, HasSubstr(std::to_string(op.offset)));
    EXPECT_THAT(message, HasSubstr(std::to_string(op.offset + op.bytes - 1)));
  }
  run.ExpectBytes(good, Range(0, 9999, 1));
  run.ExpectGuards();
}

TEST_P(SourceContract, EndsWhatIsCancelled) {
  for (const int in_flight_max : {2, 64}) {
    if (!MakeOfSizes({400 * kKiB, 64 * kKiB}, in_flight_max)) return;
    SourceRun run(&source());
    std::vector<ReadOp> ops;
    for (int i = 0; i < 64; ++i) ops.push_back(run.Op(i % 2, i * 1000, 900));
    ASSERT_TRUE(run.Start(ops).ok());
    for (size_t i = 0; i < 64; i += 3) source().Cancel(ops[i].cookie);
    source().Cancel(123'456'789);  // no such read
    if (!run.UntilAllEnded()) return;
    for (size_t i = 0; i < 64; ++i) {
      const ReadOp& op = ops[i];
      if (i % 3 == 0 && absl::IsCancelled(run.Outcome(op.cookie))) continue;
      run.ExpectBytes(op.cookie, Range(op.object, op.offset, op.bytes));
      source().Cancel(op.cookie);  // too late
    }
    EXPECT_EQ(run.Poll(64), 0);
    run.ExpectGuards();
  }
}

TEST_P(SourceContract, MayEndWithReadsOutstanding) {
  if (!MakeOfSizes({1024 * kKiB, 100'000}, 16)) return;
  SourceRun run(&source());
  std::vector<ReadOp> ops;
  for (int i = 0; i < 64; ++i) ops.push_back(run.Op(i % 2, i * 1000, 30'000));
  ASSERT_TRUE(run.Start(ops).ok());
  run.Poll(1);
  EndSource();
  // Nothing writes any more: a sum over everything stays what it is.
  const auto sum = [&] {
    uint64_t value = 0;
    for (const ReadOp& op : ops) {
      for (int64_t i = 0; i < op.bytes; ++i) value = value * 31 + static_cast<uint64_t>(op.data[i]);
    }
    return value;
  };
  const uint64_t before = sum();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(sum(), before);
  run.ExpectGuards();
}

}  // namespace
}  // namespace sluice
