// Sources with delays and failures by dice, which a seed repeats.
#include "storage/delayed_source.h"

#include <poll.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "storage/fault_spec.h"
#include "storage/memory_source.h"
#include "storage/read_fate.h"
#include "storage/source_contract.h"
#include "storage/source_run.h"
#include "storage/wake_set.h"

namespace sluice {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

ContractStorage Decorated(const std::string& name, const DelayOptions& options) {
  const auto make = [options](const std::vector<ContractObject>& objects,
                              int) -> absl::StatusOr<ContractSource> {
    std::vector<MemoryObject> held;
    for (const ContractObject& object : objects) held.push_back({object.name, object.content});
    auto source = MakeDelayedSource(std::make_unique<MemorySource>(held), options);
    if (!source.ok()) return source.status();
    return ContractSource{nullptr, *std::move(source)};
  };
  return {name, make};
}

INSTANTIATE_TEST_SUITE_P(Delayed, SourceContract,
                         testing::Values(Decorated("AtOnce", {}),
                                         Decorated("Late", {.latency_ns = kMillisecond}),
                                         Decorated("Scattered", {.latency_ns = kMillisecond,
                                                                 .jitter = 1,
                                                                 .tail_percent = 10,
                                                                 .tail_factor = 5})),
                         ContractStorageName);

class DelayedSource : public testing::Test {
 protected:
  void Make(const DelayOptions& options) {
    auto memory = std::make_unique<MemorySource>(
        std::vector<MemoryObject>{{"a.bin", std::string(100'000, 'a')}});
    memory_ = memory.get();
    source_ = *MakeDelayedSource(std::move(memory), options);
    run_ = std::make_unique<SourceRun>(source_.get());
  }
  ReadOp Op(int64_t item, int attempt = 0) {
    ReadOp op = run_->Op(0, 0, 10);
    op.item = item;
    op.attempt = attempt;
    return op;
  }
  void Start(const ReadOp& op) { ASSERT_TRUE(run_->Start(absl::MakeConstSpan(&op, 1)).ok()); }
  bool Readable() const {
    pollfd wait = {.fd = source_->ready_fd(), .events = POLLIN, .revents = 0};
    return poll(&wait, 1, 0) == 1;
  }

  MemorySource* memory_ = nullptr;
  std::unique_ptr<Source> source_;
  std::unique_ptr<SourceRun> run_;
};

TEST_F(DelayedSource, WhatWasThereAtOnceIsSoWithoutADelayAlone) {
  for (const int64_t latency_ns : {int64_t{0}, kMillisecond}) {
    Make({.latency_ns = latency_ns});
    ReadOp op = Op(0);
    Start(op);
    ASSERT_TRUE(run_->UntilAllEnded());
    EXPECT_EQ(run_->AtOnce(op.cookie), latency_ns == 0);
  }
}

TEST_F(DelayedSource, KeepsEventsUntilTheirTime) {
  Make({.latency_ns = 20 * kMillisecond});
  const int64_t begin_ns = MonotonicNs();
  for (int i = 0; i < 100; ++i) Start(Op(i));
  EXPECT_EQ(memory_->started().size(), 100u) << "passed on at once";
  ASSERT_TRUE(run_->UntilEnded(99));
  EXPECT_GE(MonotonicNs() - begin_ns, 20 * kMillisecond);
  ASSERT_TRUE(run_->UntilAllEnded());
}

TEST_F(DelayedSource, EndsReadsInTheOrderOfTheirTimes) {
  const DelayOptions options = {.seed = 3, .latency_ns = 20 * kMillisecond, .jitter = 1};
  Make(options);
  std::vector<ReadOp> ops;
  for (int i = 0; i < 50; ++i) ops.push_back(Op(i));
  ASSERT_TRUE(run_->Start(ops).ok());
  std::sort(ops.begin(), ops.end(), [&](const ReadOp& a, const ReadOp& b) {
    return FateOf(options, a.item, 0).latency_ns < FateOf(options, b.item, 0).latency_ns;
  });
  size_t ended = 0;
  while (ended < ops.size()) {
    run_->Poll(1);
    while (ended < ops.size() && run_->Ended(ops[ended].cookie)) ++ended;
    for (size_t i = ended; i < ops.size(); ++i) ASSERT_FALSE(run_->Ended(ops[i].cookie));
  }
}

TEST_F(DelayedSource, InjectsTheFateOfEachAttempt) {
  DelayOptions options = {.seed = 11};
  options.faults = *ParseFaultSpec("transient:0.3x2,permanent:0.2,short:0.2");
  Make(options);
  std::vector<ReadOp> ops;
  for (int i = 0; i < 200; ++i) ops.push_back(Op(i / 2, i % 2));
  if (!run_->Finish(ops)) return;
  for (const ReadOp& op : ops) {
    absl::StatusCode code = absl::StatusCode::kOk;
    switch (FateOf(options, op.item, op.attempt).fault) {
      case ReadFate::Fault::kTransient:
        code = absl::StatusCode::kUnavailable;
        break;
      case ReadFate::Fault::kPermanent:
        code = absl::StatusCode::kFailedPrecondition;
        break;
      case ReadFate::Fault::kShort:
        code = absl::StatusCode::kDataLoss;
        break;
      default:
        break;
    }
    EXPECT_EQ(run_->Outcome(op.cookie).code(), code);
  }
}

TEST_F(DelayedSource, HangsUntilCancel) {
  DelayOptions options;
  options.faults.hang = 1;
  Make(options);
  const ReadOp op = Op(0);
  Start(op);
  while (source_->counters().bytes_read == 0) EXPECT_EQ(run_->Poll(1), 0);
  EXPECT_EQ(run_->Poll(1), 0);
  EXPECT_FALSE(Readable()) << "nothing to come";
  source_->Cancel(op.cookie);
  EXPECT_TRUE(Readable());
  EXPECT_EQ(run_->Poll(1), 1);
  EXPECT_TRUE(absl::IsCancelled(run_->Outcome(op.cookie)));
}

// As a file's source does that has the bytes already.
class TooLateToCancel final : public MemorySource {
 public:
  using MemorySource::MemorySource;
  void Cancel(uint64_t) override {}
};

TEST_F(DelayedSource, HangsAlsoWhereTheInnerSourceWasQuicker) {
  DelayOptions options;
  options.faults.hang = 1;
  source_ = *MakeDelayedSource(std::make_unique<TooLateToCancel>(
                                   std::vector<MemoryObject>{{"a.bin", std::string(100'000, 'a')}}),
                               options);
  run_ = std::make_unique<SourceRun>(source_.get());
  const ReadOp op = Op(0);
  Start(op);
  source_->Cancel(op.cookie);
  ASSERT_TRUE(run_->UntilAllEnded());
  EXPECT_TRUE(absl::IsCancelled(run_->Outcome(op.cookie)));
}

TEST_F(DelayedSource, EndsCancelledReadsBeforeTheirTime) {
  Make({.latency_ns = 3'600'000 * kMillisecond});
  const ReadOp kept = Op(0);
  Start(kept);
  while (source_->counters().bytes_read == 0) run_->Poll(1);
  source_->Cancel(kept.cookie);
  EXPECT_EQ(run_->Poll(1), 1);
  EXPECT_TRUE(absl::IsCancelled(run_->Outcome(kept.cookie)));
  memory_->Hold(true);
  const ReadOp inner = Op(1);
  Start(inner);
  EXPECT_EQ(run_->Poll(1), 0);
  source_->Cancel(inner.cookie);
  ASSERT_TRUE(run_->UntilAllEnded());
  EXPECT_TRUE(absl::IsCancelled(run_->Outcome(inner.cookie)));
}

// Its entry in the order of times must not end the read that has its place and cookie now.
TEST_F(DelayedSource, ACancelledReadsTimeIsNobodyElses) {
  const DelayOptions options = {.seed = 1, .latency_ns = 40 * kMillisecond, .jitter = 1};
  Make(options);
  int64_t soon = 0;
  int64_t late = 0;
  for (int64_t item = 0; item < 100; ++item) {
    const int64_t latency_ns = FateOf(options, item, 0).latency_ns;
    if (latency_ns < FateOf(options, soon, 0).latency_ns) soon = item;
    if (latency_ns > FateOf(options, late, 0).latency_ns) late = item;
  }
  const ReadOp first = Op(soon);
  Start(first);
  run_->Poll(0);
  source_->Cancel(first.cookie);
  ASSERT_TRUE(run_->UntilAllEnded());
  run_ = std::make_unique<SourceRun>(source_.get());
  const ReadOp second = Op(late);
  ASSERT_EQ(second.cookie, first.cookie);
  const int64_t begin_ns = MonotonicNs();
  Start(second);
  ASSERT_TRUE(run_->UntilAllEnded());
  EXPECT_GE(MonotonicNs() - begin_ns, FateOf(options, late, 0).latency_ns);
}

TEST_F(DelayedSource, PassesTheInnerSourcesEndOn) {
  Make({.latency_ns = 3'600'000 * kMillisecond});
  Start(Op(0));
  Start(Op(1));
  memory_->Break();
  ReadEvent event;
  EXPECT_EQ(source_->Poll(absl::MakeSpan(&event, 1)).status().code(), absl::StatusCode::kInternal);
}

using Fault = ReadFate::Fault;

constexpr int kItems = 20'000;

TEST(FaultSpec, ReadsEachKind) {
  const FaultSpec spec = *ParseFaultSpec("hang:0.001,transient:0.01x3,permanent:0.25,short:1e-3");
  EXPECT_EQ(spec.transient, 0.01);
  EXPECT_EQ(spec.transient_attempts, 3);
  EXPECT_EQ(spec.permanent, 0.25);
  EXPECT_EQ(spec.short_object, 0.001);
  EXPECT_EQ(spec.hang, 0.001);
  EXPECT_EQ(ParseFaultSpec("transient:1")->transient_attempts, 1);
  EXPECT_FALSE(ParseFaultSpec("")->any());
}

TEST(FaultSpec, RefusesAnythingElse) {
  for (const std::string text :
       {"slow:0.1", "transient", "transient:", "transient:x", "transient:1.5", "transient:-0.1",
        "transient:nan", "transient:0.1x0", "transient:0.1x", "hang:0.1x2", ",", "hang:0.1,",
        "hang:0.1,hang:0.2", "permanent:0.6,short:0.6", "transient:0.6,hang:0.6"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseFaultSpec(text).status())) << text;
  }
}

TEST(ReadFate, IsAFunctionOfSeedItemAndAttempt) {
  DelayOptions options = {.seed = 7, .latency_ns = 1'000'000, .jitter = 0.5};
  options.faults = *ParseFaultSpec("transient:0.5x9");
  int differ = 0;
  for (int item = 0; item < 100; ++item) {
    const ReadFate fate = FateOf(options, item, 1);
    EXPECT_EQ(fate.latency_ns, FateOf(options, item, 1).latency_ns);
    EXPECT_EQ(fate.fault, FateOf(options, item, 1).fault);
    differ += fate.fault != FateOf(options, item, 2).fault;
  }
  EXPECT_GT(differ, 20) << "attempts are not drawn one by one";
  DelayOptions other = options;
  other.seed = 8;
  EXPECT_NE(FateOf(options, 0, 0).latency_ns, FateOf(other, 0, 0).latency_ns);
}

TEST(ReadFate, LatencyStaysWithinItsJitter) {
  const DelayOptions options = {.latency_ns = 1'000'000, .jitter = 0.25};
  double sum = 0;
  for (int item = 0; item < kItems; ++item) {
    const int64_t latency_ns = FateOf(options, item, 0).latency_ns;
    EXPECT_GE(latency_ns, 750'000);
    EXPECT_LE(latency_ns, 1'250'000);
    sum += static_cast<double>(latency_ns);
  }
  EXPECT_NEAR(sum / kItems, 1e6, 5e3);
  EXPECT_EQ(FateOf({.latency_ns = 5}, 3, 0).latency_ns, 5);
}

TEST(ReadFate, TailIsAsLongAndAsFrequentAsAsked) {
  const DelayOptions options = {.latency_ns = 1000, .tail_percent = 5, .tail_factor = 10};
  std::map<int64_t, int> counts;
  for (int item = 0; item < kItems; ++item) ++counts[FateOf(options, item, 0).latency_ns];
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts[10'000], kItems * 0.05, kItems * 0.01);
}

TEST(ReadFate, FaultsAreAsFrequentAsAsked) {
  const DelayOptions options = {
      .faults = *ParseFaultSpec("transient:0.1,permanent:0.05,short:0.02,hang:0.03")};
  std::map<Fault, int> first;
  std::map<Fault, int> second;
  for (int item = 0; item < kItems; ++item) {
    const Fault fault = FateOf(options, item, 0).fault;
    const Fault again = FateOf(options, item, 1).fault;
    ++first[fault];
    ++second[again];
    const auto stays = [](Fault f) { return f == Fault::kPermanent || f == Fault::kShort; };
    if (stays(fault) || stays(again)) {
      EXPECT_EQ(fault, again);
    }
  }
  const double rest = 0.93 * kItems;
  EXPECT_NEAR(first[Fault::kPermanent], 0.05 * kItems, 0.01 * kItems);
  EXPECT_NEAR(first[Fault::kShort], 0.02 * kItems, 0.01 * kItems);
  EXPECT_NEAR(first[Fault::kTransient], 0.1 * rest, 0.01 * kItems);
  EXPECT_NEAR(first[Fault::kHang], 0.03 * rest, 0.01 * kItems);
  EXPECT_EQ(second[Fault::kTransient], 0) << "beyond the attempts that can fail";
}

TEST(ReadFate, RefusesOptionsOutOfRange) {
  EXPECT_TRUE(CheckDelayOptions({}).ok());
  for (const DelayOptions& options :
       {DelayOptions{.latency_ns = -1}, DelayOptions{.jitter = 1.5}, DelayOptions{.jitter = -0.5},
        DelayOptions{.tail_percent = 101}, DelayOptions{.tail_factor = -1},
        DelayOptions{.latency_ns = 1'000'000'000, .tail_factor = 1e30}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckDelayOptions(options)));
  }
}

}  // namespace
}  // namespace sluice
