// Neighbouring reads that are one call of the kernel's: bytes, counts, and what goes wrong.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "storage/file/file_source.h"
#include "storage/file_storage.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

struct Kind {
  FileEngine engine;
  FileAccess access;
};

class JoinedReads : public testing::TestWithParam<Kind> {
 protected:
  static constexpr int64_t kBytes = 1 << 20;

  void SetUp() override {
    storage_.Write("a", content_);
    FileSourceOptions options;
    options.engine = GetParam().engine;
    options.access = GetParam().access;
    auto source = MakeFileSource(storage_.directory(), {"a"}, options);
    if (absl::IsUnavailable(source.status())) GTEST_SKIP() << source.status();  // no io_uring
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
  }
  // Neighbours from `offset` on, all but the first of which may join.
  std::vector<ReadOp> Neighbours(SourceRun* run, int64_t offset,
                                 const std::vector<int64_t>& sizes) {
    std::vector<ReadOp> ops;
    for (const int64_t bytes : sizes) {
      ops.push_back(run->Op(0, offset, bytes));
      ops.back().may_join = ops.size() > 1;
      offset += bytes;
    }
    return ops;
  }
  void ExpectAll(const SourceRun& run, const std::vector<ReadOp>& ops) const {
    run.ExpectAll(ops, content_);
    run.ExpectGuards();
  }

  const FileStorage storage_;
  const std::string content_ = SourceContent(3, kBytes);
  std::unique_ptr<Source> source_;
};

TEST_P(JoinedReads, NeighboursAreOneRequest) {
  SourceRun run(source_.get());
  const std::vector<ReadOp> ops = Neighbours(&run, 8192, {4096, 8192, 4096, 65536});
  if (!run.Finish(ops)) return;
  ExpectAll(run, ops);
  EXPECT_EQ(source_->counters().requests, 1);
}

// Blocks of a disk do not overlap: what begins inside one is a request of its own, where the page
// cache is passed by. Through it, anything joins.
TEST_P(JoinedReads, PartsOfAnyLengthArrive) {
  SourceRun run(source_.get());
  const std::vector<ReadOp> ops = Neighbours(&run, 77, {4019, 100, 3996, 5000, 1, 70'000});
  if (!run.Finish(ops)) return;
  ExpectAll(run, ops);
  EXPECT_LE(source_->counters().requests, 6);
  if (GetParam().access == FileAccess::kBuffered) {
    EXPECT_EQ(source_->counters().requests, 1);
  }
}

TEST_P(JoinedReads, WhatMayNotJoinDoesNot) {
  SourceRun run(source_.get());
  std::vector<ReadOp> ops = Neighbours(&run, 0, {4096, 4096, 4096});
  ops[1].may_join = false;
  ops[2].may_join = false;
  if (!run.Finish(ops)) return;
  ExpectAll(run, ops);
  EXPECT_EQ(source_->counters().requests, 3);
}

TEST_P(JoinedReads, OneRequestIsNoLongerThanEightMebibytes) {
  const std::string content = SourceContent(4, 20 << 20);
  storage_.Write("a", content);
  SourceRun run(source_.get());
  const std::vector<ReadOp> ops = Neighbours(&run, 0, std::vector<int64_t>(20, 1 << 20));
  if (!run.Finish(ops)) return;
  run.ExpectAll(ops, content);
  EXPECT_EQ(source_->counters().requests, 3);
}

// Those before the end of the file are none the worse for it.
TEST_P(JoinedReads, AFileThatEndsFailsTheReadsBeyond) {
  SourceRun run(source_.get());
  const std::vector<ReadOp> ops = Neighbours(&run, kBytes - 8192, {4096, 4096, 4096, 4096});
  if (!run.Finish(ops)) return;
  ExpectAll(run, {ops[0], ops[1]});
  EXPECT_TRUE(absl::IsDataLoss(run.Outcome(ops[2].cookie))) << run.Outcome(ops[2].cookie);
  EXPECT_TRUE(absl::IsDataLoss(run.Outcome(ops[3].cookie))) << run.Outcome(ops[3].cookie);
}

// Each ends, with its bytes or as cancelled; the others have theirs.
TEST_P(JoinedReads, ACancelledPartTakesNoOtherWithIt) {
  SourceRun run(source_.get());
  for (int round = 0; round < oracle::Sampled(50); ++round) {
    const std::vector<ReadOp> ops = Neighbours(&run, 0, {65536, 65536, 65536, 65536});
    ASSERT_TRUE(run.Start(ops).ok());
    source_->Cancel(ops[2].cookie);
    ASSERT_TRUE(run.UntilAllEnded());
    for (size_t i = 0; i < ops.size(); ++i) {
      if (i == 2 && absl::IsCancelled(run.Outcome(ops[i].cookie))) continue;
      ExpectAll(run, {ops[i]});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, JoinedReads,
                         testing::Values(Kind{FileEngine::kUring, FileAccess::kDirect},
                                         Kind{FileEngine::kUring, FileAccess::kBuffered},
                                         Kind{FileEngine::kThreads, FileAccess::kDirect},
                                         Kind{FileEngine::kThreads, FileAccess::kBuffered}));

}  // namespace
}  // namespace sluice
